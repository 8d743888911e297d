// Package lanes says how much of a slice the kernels that work on whole vectors of AVX2 take; their
// callers compute the rest in plain Go.
package lanes

import "github.com/primus-fl/primus/internal/cpufeat"

// Count is the number of float32s in a vector of AVX2.
const Count = 8

// Whole returns how many of n elements whole vectors hold: none on a machine without AVX2.
func Whole(n int) int {
	if n < Count || !cpufeat.Has(cpufeat.AVX2) {
		return 0
	}
	return n &^ (Count - 1)
}
