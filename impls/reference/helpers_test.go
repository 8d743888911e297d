package reference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// The expected values in the tests of single ops are computed by hand; the operands are chosen so
// that this is easy to follow.

var (
	nan   = math.NaN()
	inf   = math.Inf(1)
	tight = tensortest.Tolerance{Abs: 1e-7, Rel: 1e-7}
	ln3   = math.Log(3)
)

// of returns a tensor of these values.
func of(t *testing.T, d tensor.DType, shape []int, v ...float64) *tensor.Tensor {
	t.Helper()
	x, _ := tensortest.Guarded(t, d, shape...)
	require.NoError(t, x.SetFloat64s(v))
	return x
}

func f64(t *testing.T, shape []int, v ...float64) *tensor.Tensor {
	t.Helper()
	return of(t, tensor.F64, shape, v...)
}

func f32(t *testing.T, v ...float64) *tensor.Tensor {
	t.Helper()
	return of(t, tensor.F32, []int{len(v)}, v...)
}

func i32(t *testing.T, v ...float64) *tensor.Tensor {
	t.Helper()
	return of(t, tensor.I32, []int{len(v)}, v...)
}

// out returns a tensor that has not been written yet.
func out(t *testing.T, d tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	x, intact := tensortest.Guarded(t, d, shape...)
	t.Cleanup(func() { intact(t) })
	return x
}

// run validates and calls the reference.
func run[A any](t *testing.T, op *opregistry.Op[A], a A) {
	t.Helper()
	require.NoError(t, op.Validate(a))
	require.NoError(t, function(t, op)(nil, a))
}

func function[A any](t *testing.T, op *opregistry.Op[A]) opregistry.Func[A] {
	t.Helper()
	for _, impl := range reference.Source().Impls {
		if impl.Op == opregistry.Handle(op) {
			return impl.Run.(opregistry.Func[A])
		}
	}
	require.FailNow(t, "no impl", op.Name())
	return nil
}

func want(t *testing.T, got *tensor.Tensor, v ...float64) {
	t.Helper()
	tensortest.CloseTo(t, v, got, tight)
}
