package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/activation"
)

// elementwise returns the impl of an op that applies f to each element, as activation.geluOf does.
func elementwise(f func(float64) float64) func(activation.ActivationArgs) error {
	return func(a activation.ActivationArgs) error {
		y := a.Input.Float64s()
		for i, x := range y {
			y[i] = f(x)
		}
		return a.Output.SetFloat64s(y)
	}
}

// elementwiseGradient returns the impl of an op like activation.DGELU, given the
// derivative of the function.
func elementwiseGradient(derivative func(float64) float64) func(activation.DActivationArgs) error {
	return func(a activation.DActivationArgs) error {
		dx := a.Grad.Float64s()
		for i, x := range a.FwdInput.Float64s() {
			dx[i] *= derivative(x)
		}
		return a.Output.SetFloat64s(dx)
	}
}

// biasGradient returns the impl of an op like activation.DBiasDGELU; rows add to dbias in ascending
// order.
func biasGradient(derivative func(float64) float64) func(activation.DBiasDActivationArgs) error {
	return func(a activation.DBiasDActivationArgs) error {
		dx := a.Grad.Float64s()
		dbias := make([]float64, a.FwdInput.Shape().Cols())
		for i, x := range a.FwdInput.Float64s() {
			dx[i] *= derivative(x)
			dbias[i%len(dbias)] += dx[i]
		}
		if err := a.DBias.SetFloat64s(dbias); err != nil {
			return err
		}
		return a.Output.SetFloat64s(dx)
	}
}

// gated returns the impl of an op like activation.SwiGLU with f in place of SiLU.
func gated(f func(float64) float64) func(activation.ActivationArgs) error {
	return func(a activation.ActivationArgs) error {
		x, h := a.Input.Float64s(), a.Output.Shape().Cols()
		y := make([]float64, a.Output.NumElements())
		for i := range y {
			gate, up := halves(h, i)
			y[i] = f(x[gate]) * x[up]
		}
		return a.Output.SetFloat64s(y)
	}
}

// gatedGradient returns the impl of an op like activation.DSwiGLU, given the function and its
// derivative.
func gatedGradient(f, derivative func(float64) float64) func(activation.DActivationArgs) error {
	return func(a activation.DActivationArgs) error {
		x, dy, h := a.FwdInput.Float64s(), a.Grad.Float64s(), a.Grad.Shape().Cols()
		dx := make([]float64, len(x))
		for i, d := range dy {
			gate, up := halves(h, i)
			dx[gate] = d * x[up] * derivative(x[gate])
			dx[up] = d * f(x[gate])
		}
		return a.Output.SetFloat64s(dx)
	}
}

// halves returns the indexes of the two factors of element i of rows of h, in rows [a, b] of 2h.
func halves(h, i int) (gate, up int) {
	gate = i/h*2*h + i%h
	return gate, gate + h
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func sigmoidDerivative(x float64) float64 { return sigmoid(x) * (1 - sigmoid(x)) }

// slopedSiLU returns x·σ(alpha·x).
func slopedSiLU(x, alpha float64) float64 { return x * sigmoid(alpha*x) }

func slopedSiLUDerivative(x, alpha float64) float64 {
	return sigmoid(alpha*x) + alpha*x*sigmoidDerivative(alpha*x)
}

func silu(x float64) float64           { return slopedSiLU(x, 1) }
func siluDerivative(x float64) float64 { return slopedSiLUDerivative(x, 1) }

// qgeluSlope makes the logistic function resemble that of the normal distribution.
const qgeluSlope = 1.702

func qgelu(x float64) float64           { return slopedSiLU(x, qgeluSlope) }
func qgeluDerivative(x float64) float64 { return slopedSiLUDerivative(x, qgeluSlope) }

// relu returns max(x, 0), which is NaN for NaN.
func relu(x float64) float64 { return max(x, 0) }

func reluDerivative(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x <= 0:
		return 0
	default:
		return x // NaN
	}
}

func srelu(x float64) float64           { return relu(x) * relu(x) }
func sreluDerivative(x float64) float64 { return 2 * relu(x) }
