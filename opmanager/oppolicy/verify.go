package oppolicy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opregistry"
)

// Verify says which calls are verified: they run a second time on the reference, on copies of the
// operands, so that the results can be compared. The zero value is the default: VerifySampled.
//
// A result beyond the tolerance of the op is not used. Its impl is quarantined for the op, and the
// call is answered by the next candidate from the operands as they were, or fails under a strict
// policy. A backward op fails, because only the impl that ran forward can read the saved state.
type Verify struct {
	// Mode says when calls of impls of kind vendor, and of impls on a device, are verified.
	Mode VerifyMode
	// Fraction, above 0 and up to 1, replaces Mode: this part of the calls of each kind of call is
	// verified, of impls of every kind but reference. The first call always is.
	Fraction float64
	// Ops are patterns of the ops that are verified; nil means all.
	Ops []string
	// ReportOnly lets wrong results be used. They are only counted and reported.
	ReportOnly bool
}

// VerifyMode says when calls are verified. Calls of an op on an impl are of one kind if
// opregistry.Call.Signature gives one number for them: the same dtypes, layouts and options, and
// lengths that are nearly the same.
type VerifyMode uint8

// The modes of verification.
const (
	// VerifySampled verifies the first two calls of each kind and later ones at a falling rate, in
	// at most half a percent of the time.
	VerifySampled VerifyMode = iota
	// VerifyFirst verifies the first two calls of each kind.
	VerifyFirst
	// VerifyOff verifies no call.
	VerifyOff
)

var verifyModes = [...]string{VerifySampled: "sampled", VerifyFirst: "first", VerifyOff: "off"}

// verifyAlways is the word for Fraction 1.
const verifyAlways = "always"

// String returns sampled, first or off.
func (m VerifyMode) String() string {
	if int(m) < len(verifyModes) {
		return verifyModes[m]
	}
	return fmt.Sprintf("VerifyMode(%d)", uint8(m))
}

// Covers reports whether calls of an impl of a kind may be verified, for an op on the host or on a
// device.
func (v *Verify) Covers(op string, kind opregistry.Kind, onHost bool) bool {
	switch {
	case kind == opregistry.KindReference:
		return false
	case v.Fraction == 0 && (v.Mode == VerifyOff || onHost && kind != opregistry.KindVendor):
		return false
	}
	return v.Ops == nil || slices.ContainsFunc(v.Ops, func(p string) bool { return matchPattern(p, op) })
}

// firstVerified is how many calls of each kind are verified before the rate falls.
const firstVerified = 2

// Next returns the number of the call that is verified after call n, counted from 1, and 0 if none
// is.
func (v *Verify) Next(n uint64) uint64 {
	switch {
	case v.Fraction > 0:
		// Call k is verified if ceil(k·f) > ceil((k-1)·f), so those are the calls floor(i/f) + 1.
		done := math.Ceil(float64(n) * v.Fraction)
		next := uint64(done/v.Fraction) + 1
		return max(n+1, next)
	case n < firstVerified:
		return n + 1
	case v.Mode == VerifySampled:
		return n + 1 + n/4
	}
	return 0
}

// SetVerify sets which calls are verified from off, first, sampled, always, or the fraction of the
// calls, with the defaults for everything else.
func (p *Policy) SetVerify(value, source string) error {
	word := strings.TrimSpace(value)
	v, ok := parseVerify(word)
	if !ok {
		words := append(slices.Clone(verifyModes[:]), verifyAlways)
		return &Error{Source: source, Value: value, Offset: leadingSpace(value),
			Problem: fmt.Sprintf("given %q, want off, first, sampled, always, or the part of the calls as a number from 0 to 1%s", word, suggest.Hint(word, words))}
	}
	p.Verify = v
	p.SetSource(FieldVerify, source)
	return nil
}

func parseVerify(word string) (Verify, bool) {
	word = strings.ToLower(word)
	if word == verifyAlways {
		return Verify{Fraction: 1}, true
	}
	if i := slices.Index(verifyModes[:], word); i >= 0 {
		return Verify{Mode: VerifyMode(i)}, true
	}
	f, err := strconv.ParseFloat(word, 64)
	switch {
	case err != nil || !(f >= 0 && f <= 1):
		return Verify{}, false
	case f == 0:
		return Verify{Mode: VerifyOff}, true
	}
	return Verify{Fraction: f}, true
}

// mode returns the word or the number that SetVerify reads.
func (v *Verify) mode() string {
	switch v.Fraction {
	case 0:
		return v.Mode.String()
	case 1:
		return verifyAlways
	}
	return strconv.FormatFloat(v.Fraction, 'g', -1, 64)
}
