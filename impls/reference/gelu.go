package reference

import "math"

// geluErf returns x·Φ(x), where Φ is the distribution function of the normal distribution.
func geluErf(x float64) float64 { return x * normal(x) }

// geluErfDerivative returns the derivative of geluErf.
func geluErfDerivative(x float64) float64 {
	return normal(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// The constants of the tanh form of geluOf.
const (
	geluScale = math.Sqrt2 / math.SqrtPi // √(2/π)
	geluCubic = 0.044715
)

// geluOf returns x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))).
func geluOf(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(geluScale*(x+geluCubic*x*x*x)))
}

// geluDerivative returns the derivative of geluOf.
func geluDerivative(x float64) float64 {
	t := math.Tanh(geluScale * (x + geluCubic*x*x*x))
	return 0.5*(1+t) + 0.5*x*(1-t*t)*geluScale*(1+3*geluCubic*x*x)
}
