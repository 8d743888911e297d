package reference

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
)

// clamp holds the constants of the clamped ops.
type clamp struct{ limit, alpha, offset float64 }

func newClamp(limit, alpha, offset opregistry.OptionalFloat) clamp {
	return clamp{limit: float64(limit.Or(7)), alpha: float64(alpha.Or(1.702)), offset: float64(offset.Or(1))}
}

// gate returns a' and factor b'.
func (c clamp) gate(a float64) float64   { return min(a, c.limit) }
func (c clamp) factor(b float64) float64 { return min(max(b, -c.limit), c.limit) + c.offset }

// clampedSwiGLU implements activation.ClampedSwiGLU.
func clampedSwiGLU(a activation.ClampedSwiGLUArgs) error {
	c := newClamp(a.Limit, a.Alpha, a.GLULinearOffset)
	x, h := a.Input.Float64s(), a.Output.Shape().Cols()
	y := make([]float64, a.Output.NumElements())
	for i := range y {
		gate, up := halves(h, i)
		y[i] = slopedSiLU(c.gate(x[gate]), c.alpha) * c.factor(x[up])
	}
	return a.Output.SetFloat64s(y)
}

// clampedDSwiGLU implements activation.ClampedDSwiGLU.
func clampedDSwiGLU(a activation.ClampedDSwiGLUArgs) error {
	c := newClamp(a.Limit, a.Alpha, a.GLULinearOffset)
	x, dy, h := a.FwdInput.Float64s(), a.Grad.Float64s(), a.Grad.Shape().Cols()
	dx := make([]float64, len(x))
	for i, d := range dy {
		gate, up := halves(h, i)
		if !(x[gate] > c.limit) {
			dx[gate] = d * c.factor(x[up]) * slopedSiLUDerivative(c.gate(x[gate]), c.alpha)
		}
		if !(x[up] < -c.limit || x[up] > c.limit) {
			dx[up] = d * slopedSiLU(c.gate(x[gate]), c.alpha)
		}
	}
	return a.Output.SetFloat64s(dx)
}
