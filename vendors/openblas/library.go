package openblas

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/vendors/internal/blas"
)

// minFLOP is where a call of the library, about 0.3 µs, is a tenth of the
// product's time at the rate of small products.
const minFLOP = 64 << 10

// Options are the choices of who makes a Library.
type Options struct {
	// Threads that one product runs on; 0 means GOMAXPROCS. Never more than the
	// CPUs. OPENBLAS_NUM_THREADS in the environment wins over it, and over 0
	// OMP_NUM_THREADS does, too.
	Threads int

	// Names are the sonames or paths to try, in order; nil means the usual
	// sonames of OpenBLAS.
	Names []string
}

// Library is OpenBLAS as a source of impls.
type Library struct {
	open func() (*handle, error)
}

// New returns a Library that has loaded nothing yet.
func New(opts Options) *Library {
	return &Library{open: sync.OnceValues(func() (*handle, error) {
		h, err := open(opts)
		if err != nil {
			return nil, fmt.Errorf("openblas: %w", err)
		}
		return h, nil
	})}
}

// Source returns the impl that the library brings: vendor.openblas of
// generic_gemm.
func (l *Library) Source() opregistry.Source {
	return opregistry.Source{
		Name: "openblas",
		Impls: []opregistry.Impl{{
			Op:        ops.GenericGemm,
			ID:        "vendor.openblas",
			Kind:      opregistry.KindVendor,
			Vendor:    "openblas",
			Priority:  100,
			Run:       l.gemm,
			Available: l.Available,
		}},
	}
}

// Available loads the library if that was not done, and returns nil when it can
// be used, else why not.
func (l *Library) Available() error {
	_, err := l.open()
	return err
}

// Info describes the library that is in use, loading it if that was not done:
// version, core type, threads, file, and a warning when its kernels are older
// than the CPU. Without the library it says why.
func (l *Library) Info() string {
	h, err := l.open()
	if err != nil {
		return "not available: " + err.Error()
	}
	return h.info()
}

// gemm is the impl; see blas.Gemm for what it computes and declines.
func (l *Library) gemm(x *opregistry.Exec, a ops.GenericGemmArgs) error {
	h, err := l.open()
	if err != nil {
		return opregistry.Unsupported("%v", err)
	}
	return blas.Gemm(x, a, h, blas.Limits{MinFLOP: minFLOP, MaxDim: math.MaxInt32})
}

// threads returns how many threads a product is to run on.
func (o Options) threads() int {
	n := o.Threads
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return min(n, runtime.NumCPU())
}
