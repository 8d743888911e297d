package onednn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func softmaxGradientOracle(_ *opregistry.Exec, a softmax.SoftmaxBackwardArgs) error {
	dx, y, cols := a.OutputGrads.Float64s(), a.SoftmaxResults.Float64s(), a.Output.Shape().Cols()
	for r := range a.Output.Shape().Rows() {
		sum := 0.0
		for at := r * cols; at < (r+1)*cols; at++ {
			sum += dx[at] * y[at]
		}
		for at := r * cols; at < (r+1)*cols; at++ {
			dx[at] = float64(a.ScaleFactor) * y[at] * (dx[at] - sum)
		}
	}
	return set(a.Output, dx)
}

// withoutFactor is an impl that runs every case with a factor of 1.
func withoutFactor(impl opregistry.Impl) opregistry.Impl {
	run := impl.Run.(opregistry.Func[softmax.SoftmaxBackwardArgs])
	impl.Run = func(x *opregistry.Exec, a softmax.SoftmaxBackwardArgs) error {
		a.ScaleFactor = 1
		return run(x, a)
	}
	return impl
}

func TestSoftmaxConformance(t *testing.T) {
	primustest.Sequential(t, "it compares results")
	h := openedWithPrimitives(t)
	for _, op := range []*opregistry.Op[softmax.SoftmaxBackwardArgs]{softmax.ScaledSoftmaxBackward, softmax.ScaledMaskedSoftmaxBackward} {
		opscases.All().Run(t, withoutFactor(unlimited(h, op, (*handle).softmaxGradient)), withoutFactor(oracle(op, softmaxGradientOracle)),
			opstest.WithDTypes(tensor.F32, tensor.BF16), opstest.MustServe(dtypes(t, h)...))
	}
}

// gradientCall makes operands of a call with a factor of 1; equal seeds make equal operands.
func gradientCall(t testing.TB, seed uint64, d tensor.DType, shape ...int) softmax.SoftmaxBackwardArgs {
	y := tensortest.Random(t, seed, d, shape...)
	return softmax.SoftmaxBackwardArgs{
		OutputGrads: tensortest.Random(t, seed+1, d, shape...), SoftmaxResults: y, Output: tensortest.Random(t, seed+2, d, shape...), ScaleFactor: 1,
	}
}

func TestSoftmaxOnSeveralThreads(t *testing.T) {
	h := openedWithPrimitives(t)
	for _, d := range dtypes(t, h) {
		got, want := gradientCall(t, 1, d, 2, 3, 65, 130), gradientCall(t, 1, d, 2, 3, 65, 130)
		require.NoError(t, h.softmaxGradient(nil, got))
		require.NoError(t, softmaxGradientOracle(nil, want))
		tensortest.Close(t, want.Output, got.Output, softmax.ScaledSoftmaxBackward.Tolerance().Of(d))
	}
}

func TestSoftmaxDeclines(t *testing.T) {
	h := openedWithPrimitives(t)
	for want, change := range map[string]func(a *softmax.SoftmaxBackwardArgs){
		"given scale_factor 0.125, want 1":             func(a *softmax.SoftmaxBackwardArgs) { a.ScaleFactor = 0.125 },
		"given output_grads of dtype f16, want f32 or": func(a *softmax.SoftmaxBackwardArgs) { *a = gradientCall(t, 1, tensor.F16, 1, 1, 3, 4) },
		"given softmax_results with strides": func(a *softmax.SoftmaxBackwardArgs) {
			turned, err := tensortest.Random(t, 1, tensor.F32, 1, 1, 4, 3).Transpose(2, 3)
			require.NoError(t, err)
			a.SoftmaxResults = turned
		},
	} {
		a := gradientCall(t, 1, tensor.F32, 1, 1, 3, 4)
		change(&a)
		before := a.Output.Float64s()
		err := h.softmaxGradient(nil, a)
		require.ErrorIs(t, err, opregistry.ErrUnsupported)
		assert.ErrorContains(t, err, want)
		assert.Equal(t, before, a.Output.Float64s())
	}
}
