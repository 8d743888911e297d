package onednn

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/primus-fl/primus/vendors/internal/blas"
	"github.com/primus-fl/primus/vendors/loader"
)

// handle is oneDNN, loaded.
type handle struct {
	file    string
	release string // such as 3.0.0
	isa     int32
	threads int

	sgemm    sgemmFunc
	bgemm    bgemmFunc // nil if the library has none
	products chan *product
	fixed    *loader.Executor

	lanes        chan *lane
	noPrimitives error // why there are no lanes
}

// libraryVersion is the beginning of the C struct dnnl_version_t, which has not changed from oneDNN
// 1 to 3.
type libraryVersion struct{ major, minor, patch int32 }

// idleSpins is how often an idle thread of GNU OpenMP looks for more work before it sleeps. 1,000
// takes a few microseconds, which covers the barriers within a product. With 0 small products lose
// a quarter of their speed; with 20,000 and a busy machine they lose half.
const idleSpins = "1000"

// settings returns the variables that OpenMP reads, to set where the user has not set them.
func settings(opts Options) []loader.Variable {
	return []loader.Variable{
		{Name: "OMP_NUM_THREADS", Value: strconv.Itoa(blas.Threads(opts.Threads))},
		{Name: "OMP_WAIT_POLICY", Value: "passive"},
		{Name: "GOMP_SPINCOUNT", Value: idleSpins},
	}
}

func open(opts Options) (*handle, error) {
	names := opts.Names
	if names == nil {
		names = []string{"libdnnl.so.3", "libdnnl.so.2"}
		if runtime.GOOS == "darwin" {
			names = []string{"libdnnl.3.dylib", "libdnnl.2.dylib"}
		}
	}
	lib, err := loader.OpenWith(settings(opts), names...)
	if err != nil {
		return nil, err
	}
	h := &handle{file: lib.Path(), threads: blas.Threads(opts.Threads)}
	var version func() *libraryVersion
	if err := errors.Join(lib.Bind(&h.sgemm, "dnnl_sgemm"), lib.Bind(&version, "dnnl_version")); err != nil {
		return nil, fmt.Errorf("%s is not oneDNN: %w", h.file, err)
	}
	var major int32
	if v := version(); v != nil {
		major = v.major
		h.release = fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
	}
	if lib.Bind(&h.bgemm, "dnnl_gemm_bf16bf16f32") != nil {
		h.bgemm = nil
	}
	var isa, threads func() int32
	if lib.Bind(&isa, "dnnl_get_effective_cpu_isa") == nil {
		h.isa = isa()
	}
	if lib.Bind(&threads, "omp_get_max_threads") == nil {
		h.threads = max(1, int(threads()))
	}
	callers := max(1, runtime.NumCPU()/h.threads)
	h.fixed = loader.StartExecutor(callers)
	h.products = make(chan *product, callers)
	for range callers {
		h.products <- newProduct(h.sgemm, h.bgemm)
	}
	h.lanes, h.noPrimitives = newLanes(lib, major, callers)
	return h, nil
}

// Info describes the library in one line.
func (h *handle) Info() string {
	return fmt.Sprintf("oneDNN %s, %s, threads %d, %s", h.release, isaName(h.isa), h.threads, h.file)
}

// Version is that of the library.
func (h *handle) Version() string { return h.release }

// primitivesBF16 returns an error if this package does not know the API for primitives, or oneDNN
// has none in bf16 for the CPU.
func (h *handle) primitivesBF16() error {
	if h.noPrimitives == nil && h.isa&isaAVX512 != isaAVX512 {
		return fmt.Errorf("%s uses %s on this machine, want avx512 or better for primitives in bf16", h.file, isaName(h.isa))
	}
	return h.noPrimitives
}

// isaName returns words for the mask that dnnl_get_effective_cpu_isa returns: the largest known set
// of instructions that the mask contains.
func isaName(mask int32) string {
	name := "isa " + strconv.FormatInt(int64(mask), 16)
	for _, isa := range [...]struct {
		mask int32
		name string
	}{{0x1, "sse4.1"}, {0x3, "avx"}, {0x7, "avx2"}, {isaAVX512, "avx512"}, {0x67, "avx512 vnni"}, {isaBF16, "avx512 bf16"}, {0x1ef, "avx512 fp16"}} {
		if mask&isa.mask == isa.mask {
			name = isa.name
		}
	}
	return name
}
