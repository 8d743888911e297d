package reference_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func TestRMSNorm(t *testing.T) {
	t.Parallel()
	// mean(x²) + eps = 12.5 + 12.5 = 5²
	x, gamma := f64(t, []int{1, 2}, 3, 4), f64(t, []int{2}, 1, 2)
	y, rsigma := out(t, tensor.F64, 1, 2), out(t, tensor.F32, 1)
	fwd := norm.RMSNormFwdArgs{Input: x, Weight: gamma, Output: y, RSigma: rsigma, Eps: 12.5, Saved: new(opregistry.Saved)}
	run(t, norm.RMSNormFwd, fwd)
	want(t, y, 0.6, 1.6)
	want(t, rsigma, 0.2)
	fwd.ZeroCenteredGamma = true
	run(t, norm.RMSNormFwd, fwd)
	want(t, y, 1.2, 2.4)

	// ḡ = [1 2], x̂ = [0.6 0.8], mean(ḡ·x̂) = 1.1
	bwd := norm.RMSNormBwdArgs{
		DZ: f64(t, []int{1, 2}, 1, 1), X: x, RSigma: rsigma, Gamma: gamma,
		DX: out(t, tensor.F64, 1, 2), DGamma: out(t, tensor.F64, 2), Saved: new(opregistry.Saved),
	}
	run(t, norm.RMSNormBwd, bwd)
	want(t, bwd.DX, 0.2*(1-0.66), 0.2*(2-0.88))
	want(t, bwd.DGamma, 0.6, 0.8)

	none := out(t, tensor.F64, 0, 2)
	run(t, norm.RMSNormBwd, norm.RMSNormBwdArgs{
		DZ: none, X: none, RSigma: out(t, tensor.F32, 0), Gamma: gamma, DX: none, DGamma: bwd.DGamma, Saved: new(opregistry.Saved),
	})
	want(t, bwd.DGamma, 0, 0)
}

func TestRMSNormSpecialRows(t *testing.T) {
	t.Parallel()
	y, rsigma := out(t, tensor.F64, 3, 2), out(t, tensor.F32, 3)
	run(t, norm.RMSNormFwd, norm.RMSNormFwdArgs{
		Input: f64(t, []int{3, 2}, 0, 0, nan, 1, inf, 1), Weight: f64(t, []int{2}, 1, 1), Output: y, RSigma: rsigma, Eps: 0.25, Saved: new(opregistry.Saved),
	})
	want(t, y, 0, 0, nan, nan, nan, 0)
	want(t, rsigma, 2, nan, 0)
}
