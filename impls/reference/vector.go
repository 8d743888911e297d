package reference

import "math"

// dot returns Σ x·y.
func dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// addScaled adds f·x to y.
func addScaled(y []float64, f float64, x []float64) {
	for i, v := range x {
		y[i] += f * v
	}
}

// logSumExp returns ln Σ exp(x), or −Inf for an empty x.
func logSumExp(x []float64) float64 {
	most := largestOf(x)
	if math.IsInf(most, 0) {
		return most
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - most)
	}
	return most + math.Log(sum)
}

// largestOf returns the maximum, or −Inf for an empty z.
func largestOf(z []float64) float64 {
	most := math.Inf(-1)
	for _, v := range z {
		most = max(most, v)
	}
	return most
}
