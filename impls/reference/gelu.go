package reference

import "math"

// The constants of the tanh form of GELU.
const (
	geluScale = math.Sqrt2 / math.SqrtPi // √(2/π)
	geluCubic = 0.044715
)

// GELU returns x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))).
func GELU(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(geluScale*(x+geluCubic*x*x*x)))
}

// GELUDerivative returns the derivative of GELU.
func GELUDerivative(x float64) float64 {
	t := math.Tanh(geluScale * (x + geluCubic*x*x*x))
	return 0.5*(1+t) + 0.5*x*(1-t*t)*geluScale*(1+3*geluCubic*x*x)
}
