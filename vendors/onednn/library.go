package onednn

import (
	"fmt"
	"math"
	"sync"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/internal/blas"
)

// minFLOP is the size at which the hand-over to oneDNN's thread takes about a third of the
// product's time.
const minFLOP = 4 << 20

// minBF16 is minFLOP for operands in bf16. CPUs with instructions for bf16 compute at least twice
// as many products in the same time as in f32, so the hand-over takes a third of the time of a
// product of twice the size.
const minBF16 = 2 * minFLOP

// minElements is the size at which the hand-over takes a tenth, or less, of the time of an op that
// a primitive computes. At a quarter of it the gradient of a norm on two threads loses more than
// the other ops gain.
const minElements = 1 << 20

// Options configure a Library.
type Options struct {
	// Threads is the number of threads that one product runs on; 0 means GOMAXPROCS. It is never
	// more than the number of CPUs. OMP_NUM_THREADS in the environment overrides it, and so does
	// the choice of another library that has loaded OpenMP before.
	Threads int

	// Names are the sonames or paths to try, in order; nil means the usual sonames of oneDNN 3 and 2.
	Names []string
}

// Library is oneDNN as a source of impls. It is loaded once, when a method first needs it.
type Library struct {
	gemm *blas.Library
	open func() (*handle, error)
}

// measured is the geometric mean of the rates of training llama_6M and llama_30M with oneDNN's
// products, relative to flagos alone: 3381/3683 and 759/963 in docs/reference/performance.md.
var measured = opregistry.Measurement{Rate: 0.85, By: "make bench-train"}

// flushes has the dtype that oneDNN computes with instructions for bf16, where the processor has
// them: those take subnormal numbers as 0.
var flushes = []tensor.DType{tensor.BF16}

// New returns a Library. Nothing is loaded yet.
func New(opts Options) *Library {
	once := sync.OnceValues(func() (*handle, error) { return open(opts) })
	limits := blas.Limits{MinFLOP: minFLOP, MinBF16: minBF16, MaxDim: math.MaxInt, Flushes: flushes}
	return &Library{open: once, gemm: blas.NewLibrary("onednn", limits, measured, func() (blas.Handle, error) { return once() })}
}

// Source returns the library's impls, each named vendor.onednn.
func (l *Library) Source() opregistry.Source {
	source := l.gemm.Source()
	source.Impls = append(source.Impls,
		impl(l, norm.LayerNormFwd, (*handle).layerNormForward),
		impl(l, norm.LayerNormBwd, (*handle).layerNormBackward),
		impl(l, softmax.ScaledSoftmaxBackward, (*handle).softmaxGradient),
		impl(l, softmax.ScaledMaskedSoftmaxBackward, (*handle).softmaxGradient),
	)
	return source
}

// impl returns the impl of an op that a primitive computes. It declares bf16 alone: in f32 the
// default impl is as fast or faster.
func impl[A any](l *Library, op *opregistry.Op[A], run func(*handle, *opregistry.Exec, A) error) opregistry.Impl {
	return opregistry.Impl{
		Op:       op,
		ID:       "vendor.onednn",
		Kind:     opregistry.KindVendor,
		Vendor:   "onednn",
		Priority: 100,
		Run: func(x *opregistry.Exec, a A) error {
			h, err := l.primitives()
			if err != nil {
				return opregistry.Unsupported("%v", err)
			}
			return run(h, x, a)
		},
		Support:           opregistry.Support{DTypes: []tensor.DType{tensor.BF16}, MinElements: minElements},
		FlushesSubnormals: flushes,
		Available: func() error {
			_, err := l.primitives()
			return err
		},
	}
}

// primitives returns the library, or an error if it has no primitives for bf16, which are those
// that the impls declare.
func (l *Library) primitives() (*handle, error) {
	h, err := l.open()
	if err == nil {
		err = h.primitivesBF16()
	}
	if err != nil {
		return nil, fmt.Errorf("onednn: %w", err)
	}
	return h, nil
}
