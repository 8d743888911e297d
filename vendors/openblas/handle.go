package openblas

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/primus-fl/primus/vendors/loader"
)

// handle is OpenBLAS, loaded.
type handle struct {
	file    string
	config  string // such as "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64"
	core    string
	threads int
	cpu     generation

	sgemm uintptr
	slots chan *slot // as many as calls may run at the same time
	fixed *loader.Executor
}

// parallelOpenMP is the value that openblas_get_parallel returns for a build with OpenMP.
const parallelOpenMP = 2

func open(opts Options) (*handle, error) {
	isSet := func(name string) bool { _, ok := os.LookupEnv(name); return ok }
	h := &handle{cpu: cpuGeneration()}
	names := opts.Names
	if names == nil {
		names = []string{"libopenblas.so.0", "libopenblas.so"}
		if runtime.GOOS == "darwin" {
			names = []string{"libopenblas.0.dylib", "libopenblas.dylib"}
		}
	}
	lib, err := loader.OpenWith(settings(h.cpu, opts, isSet), names...)
	if err != nil {
		return nil, err
	}
	h.file = lib.Path()
	if h.sgemm, err = lib.Symbol("sgemm_"); err != nil {
		return nil, err
	}
	var (
		config, core      func() string
		threads, parallel func() int32
	)
	err = errors.Join(
		lib.Bind(&config, "openblas_get_config"),
		lib.Bind(&core, "openblas_get_corename"),
		lib.Bind(&threads, "openblas_get_num_threads"),
		lib.Bind(&parallel, "openblas_get_parallel"),
	)
	if err != nil {
		return nil, fmt.Errorf("%s is not OpenBLAS: %w", h.file, err)
	}
	h.config, h.core, h.threads = config(), core(), max(1, int(threads()))
	if strings.Contains(h.config, "USE64BITINT") {
		return nil, fmt.Errorf("%s has 64-bit integers, want the usual build with 32-bit ones", h.file)
	}
	callers := max(1, runtime.NumCPU()/h.threads)
	h.slots = make(chan *slot, callers)
	for range callers {
		h.slots <- newSlot(h.sgemm)
	}
	if parallel() == parallelOpenMP && h.threads > 1 {
		h.fixed = loader.StartExecutor(callers)
	}
	return h, nil
}

// Info describes the library in one line.
func (h *handle) Info() string {
	text := fmt.Sprintf("OpenBLAS %s, core %s, threads %d, %s", cmp.Or(h.Version(), "of unknown version"), h.core, h.threads, h.file)
	if warning := warn(h.core, h.cpu); warning != "" {
		text += "; warning: " + warning
	}
	return text
}

// Version is that of the library, "" if it does not tell.
func (h *handle) Version() string {
	if words := strings.Fields(h.config); len(words) > 1 && words[0] == "OpenBLAS" {
		return words[1]
	}
	return ""
}

// warn returns a warning when the library's kernels are of an older generation than the CPU.
func warn(core string, g generation) string {
	of := coreGeneration(core)
	if g < avx2 || of == unknown || of >= g {
		return ""
	}
	want := "Haswell"
	if g == avx512 {
		want = "SkylakeX"
	}
	return fmt.Sprintf("core %s is older than this CPU and a fraction of its speed; unset OPENBLAS_CORETYPE or set it to %s before the start", core, want)
}
