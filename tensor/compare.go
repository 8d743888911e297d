package tensor

import (
	"fmt"
	"math"
	"unsafe"
)

// Tolerance says how far apart two values may be. A pair within any one of the bounds is close; the
// zero Tolerance requires equal values.
type Tolerance struct {
	// Abs and Rel bound the difference: |got-want| <= Abs + Rel·|want|.
	Abs, Rel float64

	// ULP bounds how many representable values of got's dtype lie between got and want, where want
	// is rounded to that dtype first.
	ULP int
}

// String returns the bounds that are set.
func (tol Tolerance) String() string {
	s := ""
	if tol.Abs != 0 || tol.Rel != 0 {
		s = fmt.Sprintf("%g + %g·|want|", tol.Abs, tol.Rel)
	}
	if tol.ULP != 0 {
		if s != "" {
			s += " or "
		}
		s += fmt.Sprintf("%d ulp", tol.ULP)
	}
	if s == "" {
		return "equality"
	}
	return s
}

// Difference measures how far the elements of a tensor are from the expected ones.
type Difference struct {
	Elements int // that were compared
	Beyond   int // those beyond the tolerance
	NaNs     int // those that are NaN where a number was expected, or the reverse

	MaxAbs float64 // the largest |got-want| of finite pairs
	MaxRel float64 // the largest |got-want|/|want| of finite pairs whose want is not 0
	MaxULP uint64  // the largest distance of finite pairs in representable values

	First, Worst Mismatch // of those beyond the tolerance
}

// Mismatch is an element that differs from the expected one.
type Mismatch struct {
	Index     int // row-major
	Want, Got float64
	ULP       uint64
}

// Compare measures got against the expected values, in row-major order. Whatever the tolerance, a
// NaN is close only to a NaN, and an infinity only to the same infinity; with a bound in ULP an
// infinity is also close to a want beyond the range of got's dtype. +0 and -0 are equal. Integers
// beyond 2⁵³ are rounded before they are compared. Compare returns an error when the numbers of
// elements differ and when got lies in memory that the processor cannot read.
func Compare(want []float64, got *Tensor, tol Tolerance) (Difference, error) {
	if !got.Readable() {
		return Difference{}, got.notOnHost("Compare")
	}
	got, err := got.ToHost()
	if err != nil {
		return Difference{}, err
	}
	if len(want) != got.NumElements() {
		return Difference{}, &Error{Func: "Compare", Got: fmt.Sprintf("%d expected values for %v", len(want), got), Want: fmt.Sprint(got.NumElements())}
	}
	values := got.Float64s()
	scale := newULPScale(got.dtype)
	diff := Difference{Elements: len(want)}
	for i, w := range want {
		g := values[i]
		if g == w {
			continue
		}
		m := Mismatch{Index: i, Want: w, Got: g, ULP: scale.distance(w, g)}
		if math.IsNaN(w) != math.IsNaN(g) {
			diff.NaNs++
		}
		if !math.IsNaN(m.abs()) && !math.IsInf(m.abs(), 0) {
			diff.MaxAbs, diff.MaxULP = max(diff.MaxAbs, m.abs()), max(diff.MaxULP, m.ULP)
			if w != 0 {
				diff.MaxRel = max(diff.MaxRel, m.abs()/math.Abs(w))
			}
		}
		if m.within(tol) {
			continue
		}
		if diff.Beyond++; diff.Beyond == 1 {
			diff.First, diff.Worst = m, m
		} else if m.severity() > diff.Worst.severity() {
			diff.Worst = m
		}
	}
	return diff, nil
}

func (m Mismatch) abs() float64 { return math.Abs(m.Got - m.Want) }

// String describes the pair without its index.
func (m Mismatch) String() string {
	if d := m.abs(); math.IsNaN(d) || math.IsInf(d, 0) {
		return fmt.Sprintf("got %.9g, want %.9g", m.Got, m.Want)
	}
	return fmt.Sprintf("got %.9g, want %.9g, off by %.3g or %d ulp", m.Got, m.Want, m.abs(), m.ULP)
}

func (m Mismatch) within(tol Tolerance) bool {
	switch {
	case math.IsNaN(m.Want) || math.IsNaN(m.Got):
		return math.IsNaN(m.Want) && math.IsNaN(m.Got)
	case math.IsInf(m.Want, 0) || math.IsInf(m.Got, 0):
		// A want that is finite only because it has more precision than got becomes an infinity
		// when it is rounded to got's dtype, and then got is right.
		return m.Want == m.Got || tol.ULP > 0 && m.ULP == 0
	default:
		return m.abs() <= tol.Abs+tol.Rel*math.Abs(m.Want) || m.Want == m.Got || tol.ULP > 0 && m.ULP <= uint64(tol.ULP)
	}
}

// severity orders mismatches: a NaN or an infinity on one side is the worst.
func (m Mismatch) severity() float64 {
	if d := m.abs(); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

// ulpScale numbers the representable values of a dtype, so that distances can be counted.
type ulpScale struct {
	cell *uint64
	as   *Tensor // the cell as one element
}

func newULPScale(d DType) ulpScale {
	cell := new(uint64)
	return ulpScale{cell, &Tensor{storage: &Storage{base: unsafe.Pointer(cell), size: 8}, dtype: d, elems: 1}}
}

// distance returns how many representable values lie from a to b, both rounded to the dtype.
func (s ulpScale) distance(a, b float64) uint64 {
	pa, pb := s.position(a), s.position(b)
	if pb >= pa {
		return uint64(pb) - uint64(pa)
	}
	return uint64(pa) - uint64(pb)
}

// position returns the number of a value, rounded to the dtype; both zeros have number 0.
func (s ulpScale) position(v float64) int64 {
	d, p := s.as.dtype, unsafe.Pointer(s.cell)
	s.as.store(p, v)
	var bits uint64
	switch d.Size() {
	case 1:
		bits = uint64(*(*uint8)(p))
	case 2:
		bits = uint64(*(*uint16)(p))
	case 4:
		bits = uint64(*(*uint32)(p))
	default:
		bits = *s.cell
	}
	switch {
	case d == U8 || d == Bool:
		return int64(bits)
	case !d.IsFloat():
		return int64(v)
	}
	sign := uint64(1) << (8*d.Size() - 1)
	if bits&sign != 0 {
		return -int64(bits &^ sign)
	}
	return int64(bits)
}
