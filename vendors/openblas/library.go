package openblas

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/internal/blas"
)

// minFLOP is the size at which a call of the library, about 0.3 µs, takes a tenth of the product's
// time at the rate of small products.
const minFLOP = 64 << 10

// Options configure a Library.
type Options struct {
	// Threads is the number of threads that one product runs on; 0 means GOMAXPROCS. It is never
	// more than the number of CPUs. OPENBLAS_NUM_THREADS in the environment overrides it, and
	// OMP_NUM_THREADS overrides a value of 0.
	Threads int

	// Names are the sonames or paths to try, in order; nil means the usual sonames of OpenBLAS.
	Names []string
}

// Library is OpenBLAS as a source of impls.
type Library = blas.Library

// measured is the geometric mean of the rates of training llama_6M and llama_30M with OpenBLAS's
// products, relative to flagos alone: 2751/3683 and 795/963 in docs/reference/performance.md.
var measured = opregistry.Measurement{Rate: 0.79, By: "make bench-train"}

// New returns a Library. Nothing is loaded yet.
func New(opts Options) *Library {
	return blas.NewLibrary("openblas", blas.Limits{MinFLOP: minFLOP, MaxDim: math.MaxInt32}, measured, func() (blas.Handle, error) { return open(opts) })
}
