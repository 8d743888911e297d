package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func TestLayerNorm(t *testing.T) {
	t.Parallel()
	// mean 4, variance 1, variance + eps = 2²
	x, gamma, beta := f64(t, []int{1, 2}, 3, 5), f64(t, []int{2}, 1, 2), f64(t, []int{2}, 10, 20)
	y, mu, rsigma := out(t, tensor.F64, 1, 2), out(t, tensor.F32, 1), out(t, tensor.F32, 1)
	fwd := norm.LayerNormFwdArgs{Input: x, Weight: gamma, Bias: beta, Output: y, Mu: mu, RSigma: rsigma, Eps: 3, Saved: new(opregistry.Saved)}
	run(t, norm.LayerNormFwd, fwd)
	want(t, y, 9.5, 21)
	want(t, mu, 4)
	want(t, rsigma, 0.5)
	fwd.ZeroCenteredGamma = true
	run(t, norm.LayerNormFwd, fwd)
	want(t, y, 9, 21.5)
	fwd.Bias = nil
	run(t, norm.LayerNormFwd, fwd)
	want(t, y, -1, 1.5)

	// ḡ = [1 4], x̂ = [−½ ½], mean(ḡ) = 2.5, mean(ḡ·x̂) = 0.75
	bwd := norm.LayerNormBwdArgs{
		DZ: f64(t, []int{1, 2}, 1, 2), X: x, Mu: mu, RSigma: rsigma, Gamma: gamma,
		DX: out(t, tensor.F64, 1, 2), DGamma: out(t, tensor.F64, 2), DBeta: out(t, tensor.F64, 2), Saved: new(opregistry.Saved),
	}
	run(t, norm.LayerNormBwd, bwd)
	want(t, bwd.DX, -0.5625, 0.5625)
	want(t, bwd.DGamma, -0.5, 1)
	want(t, bwd.DBeta, 1, 2)

	none := out(t, tensor.F64, 0, 2)
	run(t, norm.LayerNormBwd, norm.LayerNormBwdArgs{
		DZ: none, X: none, Mu: out(t, tensor.F32, 0), RSigma: out(t, tensor.F32, 0), Gamma: gamma, DX: none,
		DGamma: bwd.DGamma, DBeta: bwd.DBeta, Saved: new(opregistry.Saved),
	})
	want(t, bwd.DGamma, 0, 0)
	want(t, bwd.DBeta, 0, 0)
}

func TestLayerNormSpecialRows(t *testing.T) {
	t.Parallel()
	y, mu, rsigma := out(t, tensor.F64, 3, 2), out(t, tensor.F32, 3), out(t, tensor.F32, 3)
	run(t, norm.LayerNormFwd, norm.LayerNormFwdArgs{
		Input: f64(t, []int{3, 2}, 7, 7, nan, 1, inf, 1), Weight: f64(t, []int{2}, 1, 1), Output: y, Mu: mu, RSigma: rsigma, Eps: 0.25,
		Saved: new(opregistry.Saved),
	})
	want(t, y, 0, 0, nan, nan, nan, nan)
	want(t, mu, 7, nan, inf)
	want(t, rsigma, 2, nan, nan)
}

// The FlagOS plugin's reference computes in the dtype of x: near a mean of 50, bf16 has steps of ¼.
func TestLayerNorm_UpstreamComputesInBF16(t *testing.T) {
	t.Parallel()
	x := []float64{50, 50.25, 49.75, 50.5}
	y, mu, rsigma := out(t, tensor.BF16, 1, 4), out(t, tensor.F32, 1), out(t, tensor.F32, 1)
	run(t, norm.LayerNormFwd, norm.LayerNormFwdArgs{
		Input: of(t, tensor.BF16, []int{1, 4}, x...), Weight: of(t, tensor.BF16, []int{4}, 1, 1, 1, 1), Output: y, Mu: mu, RSigma: rsigma,
		Eps: 0x1p-20, Saved: new(opregistry.Saved),
	})
	want(t, mu, 50.125)
	sigma := math.Sqrt(0.078125 + 0x1p-20)
	want(t, rsigma, 1/sigma)
	tensortest.CloseTo(t, []float64{-0.125 / sigma, 0.125 / sigma, -0.375 / sigma, 0.375 / sigma}, y, tensortest.Tolerance{Rel: 0x1p-8})
}

func TestRMSNormBwdAdd(t *testing.T) {
	t.Parallel()
	// As in TestRMSNorm: dx = 0.2·[1−0.66, 2−0.88].
	add := f64(t, []int{1, 2}, 1, -2)
	a := norm.RMSNormBwdAddArgs{
		DZ: f64(t, []int{1, 2}, 1, 1), X: f64(t, []int{1, 2}, 3, 4), Add: add, RSigma: f32(t, 0.2), Gamma: f64(t, []int{2}, 1, 2),
		DX: add, DGamma: out(t, tensor.F64, 2),
	}
	run(t, norm.RMSNormBwdAdd, a)
	want(t, a.DX, 0.2*(1-0.66)+1, 0.2*(2-0.88)-2)
	want(t, a.DGamma, 0.6, 0.8)
}
