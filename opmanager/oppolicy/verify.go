package oppolicy

import (
	"math"
	"slices"
)

// Verify says which calls run a second time on the reference, on copies of the operands, so that
// the results can be compared. The zero value verifies nothing and costs nothing.
type Verify struct {
	// Fraction is the part of the calls of each bound handle that is verified, from 0 to 1. The
	// first call is always verified.
	Fraction float64
	// Ops are patterns of the ops that are verified; nil means all.
	Ops []string
	// Quarantine starts a quarantine at the first violation.
	Quarantine bool
}

// Covers reports whether calls of an op may be verified.
func (v *Verify) Covers(op string) bool {
	return v.Fraction > 0 && (v.Ops == nil || slices.ContainsFunc(v.Ops, func(p string) bool { return matchPattern(p, op) }))
}

// Sampled reports whether call number n, counted from 1, is verified.
func (v *Verify) Sampled(n uint64) bool {
	return math.Ceil(float64(n)*v.Fraction) > math.Ceil(float64(n-1)*v.Fraction)
}
