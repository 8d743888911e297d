package reference

import (
	"math"

	"github.com/primus-fl/primus/opregistry/ops"
)

// swiglu follows ops.SwiGLU.
func swiglu(a ops.SwiGLUArgs) error {
	x, h := a.Input.Float64s(), a.Output.Shape().Cols()
	y := make([]float64, a.Output.NumElements())
	for i := range y {
		gate, up := halves(h, i)
		y[i] = x[gate] * sigmoid(x[gate]) * x[up]
	}
	return a.Output.SetFloat64s(y)
}

// dswiglu follows ops.DSwiGLU.
func dswiglu(a ops.DSwiGLUArgs) error {
	x, dy, h := a.FwdInput.Float64s(), a.Grad.Float64s(), a.Grad.Shape().Cols()
	dx := make([]float64, len(x))
	for i, d := range dy {
		gate, up := halves(h, i)
		s := sigmoid(x[gate])
		dx[gate] = d * x[up] * (s + x[gate]*s*(1-s))
		dx[up] = d * x[gate] * s
	}
	return a.Output.SetFloat64s(dx)
}

// halves returns where element i of rows of h finds its two factors in rows
// [a, b] of 2h.
func halves(h, i int) (gate, up int) {
	gate = i/h*2*h + i%h
	return gate, gate + h
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// residualAdd follows ops.ResidualAdd.
func residualAdd(a ops.ResidualAddArgs) error {
	sum := a.A.Float64s()
	for i, b := range a.B.Float64s() {
		sum[i] += b
	}
	return a.Output.SetFloat64s(sum)
}
