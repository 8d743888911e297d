package reference

import "math"

// Dot returns Σ x·y.
func Dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// AddScaled adds f·x to y.
func AddScaled(y []float64, f float64, x []float64) {
	for i, v := range x {
		y[i] += f * v
	}
}

// LogSumExp returns ln Σ exp(x), or −Inf for an empty x.
func LogSumExp(x []float64) float64 {
	most := Largest(x)
	if math.IsInf(most, 0) {
		return most
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - most)
	}
	return most + math.Log(sum)
}

// Largest returns the maximum, or −Inf for an empty z.
func Largest(z []float64) float64 {
	most := math.Inf(-1)
	for _, v := range z {
		most = max(most, v)
	}
	return most
}
