package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	right := function(t, activation.SwiGLU)
	impl := func(run opregistry.Func[activation.SwiGLUArgs]) opregistry.Impl {
		return opregistry.Impl{Op: activation.SwiGLU, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: run}
	}
	oracle := impl(right)
	results, err := opscases.All().Verify(oracle, oracle, opstest.WithDTypes(tensor.F32, tensor.BF16))
	require.NoError(t, err)
	require.Len(t, results, 2)
	for _, r := range results {
		assert.Equal(t, "pass", r.Status())
		assert.Positive(t, r.Served)
		assert.Zero(t, r.Declined)
		assert.Empty(t, r.Failures)
	}
	assert.Equal(t, tensor.BF16, results[1].DType)

	results, err = opscases.All().Verify(impl(func(x *opregistry.Exec, a activation.SwiGLUArgs) error {
		switch a.Input.DType() {
		case tensor.BF16:
			return opregistry.Unsupported("bf16")
		case tensor.F16:
			panic("no f16")
		}
		if err := right(x, a); err != nil {
			return err
		}
		return each(a.Output, func(v float64) float64 { return v * 1.01 })
	}), oracle, opstest.WithDTypes(tensor.F32, tensor.BF16, tensor.F16))
	require.NoError(t, err)
	require.Len(t, results, 3)
	assert.Equal(t, "fail", results[0].Status())
	assert.Contains(t, results[0].Failures[0].Case, "f32/")
	assert.Equal(t, "unsupported", results[1].Status())
	assert.Positive(t, results[1].Declined)
	assert.Equal(t, "fail", results[2].Status())
	assert.Contains(t, results[2].Failures[0].Reason, "panic: no f16")

	_, err = opscases.All().Verify(oracle, opregistry.Impl{Op: activation.DSwiGLU, ID: "x"})
	require.ErrorContains(t, err, "want two impls of one op")
}

// each replaces the elements of a tensor.
func each(x *tensor.Tensor, f func(float64) float64) error {
	v := x.Float64s()
	for i := range v {
		v[i] = f(v[i])
	}
	return x.SetFloat64s(v)
}
