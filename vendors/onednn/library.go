package onednn

import (
	"math"

	"github.com/primus-fl/primus/vendors/internal/blas"
)

// minFLOP is where the hand-over to oneDNN's thread is about a third of the
// product's time.
const minFLOP = 4 << 20

// minBF16 is minFLOP for operands in bf16, of which CPUs that serve them multiply
// twice as many in the time of f32, or more: the hand-over is a third of the time of a
// product of twice the size.
const minBF16 = 2 * minFLOP

// Options are the choices of who makes a Library.
type Options struct {
	// Threads that one product runs on; 0 means GOMAXPROCS. Never more than the
	// CPUs. OMP_NUM_THREADS in the environment wins over it, and so does the
	// choice of another library that has loaded OpenMP before.
	Threads int

	// Names are the sonames or paths to try, in order; nil means the usual
	// sonames of oneDNN 3 and 2.
	Names []string
}

// Library is oneDNN as a source of impls.
type Library = blas.Library

// New returns a Library that has loaded nothing yet.
func New(opts Options) *Library {
	return blas.NewLibrary("onednn", blas.Limits{MinFLOP: minFLOP, MinBF16: minBF16, MaxDim: math.MaxInt}, func() (blas.Handle, error) { return open(opts) })
}
