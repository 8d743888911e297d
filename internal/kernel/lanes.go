package kernel

import "github.com/primus-fl/primus/internal/cpufeat"

// Lanes is the number of float32s in a vector of AVX2.
const Lanes = 8

// WholeLanes returns how many of n elements whole vectors hold: none on a machine without AVX2. A
// kernel computes the rest in plain Go.
func WholeLanes(n int) int {
	if n < Lanes || !cpufeat.Has(cpufeat.AVX2) {
		return 0
	}
	return n &^ (Lanes - 1)
}
