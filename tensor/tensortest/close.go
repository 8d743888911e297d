package tensortest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/primus-fl/primus/tensor"
)

// Tolerance says how far two values may be apart. A pair within any of the
// bounds is close; the zero Tolerance asks for equal values.
type Tolerance struct {
	// Abs and Rel bound the difference: |got-want| <= Abs + Rel·|want|.
	Abs, Rel float64

	// ULP bounds the number of representable values of got's dtype from want,
	// rounded to that dtype, to got.
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

// Close reports whether every element of got is within tol of want's, and fails
// the test with the first and the worst difference if not. The shapes must be
// equal; the dtypes may differ, so that want can be of more precision than got.
// Whatever the tolerance, a NaN is close to a NaN only, and an infinity to the
// same infinity only; with a bound in ULP also to a want beyond the range of
// got's dtype. +0 and -0 are equal. Integers beyond 2⁵³ are compared rounded.
func Close(t TB, want, got *tensor.Tensor, tol Tolerance) bool {
	t.Helper()
	if want == nil || got == nil {
		t.Errorf("tensortest: Close: got %v, want %v, neither of which may be nil", got, want)
		return false
	}
	if !want.Shape().Equal(got.Shape()) {
		t.Errorf("tensortest: Close: got shape %v, want %v", got.Shape(), want.Shape())
		return false
	}
	return CloseTo(t, want.Float64s(), got, tol)
}

// CloseTo is Close for expected values in row-major order.
func CloseTo(t TB, want []float64, got *tensor.Tensor, tol Tolerance) bool {
	t.Helper()
	values := got.Float64s()
	if len(values) != len(want) {
		t.Errorf("tensortest: CloseTo: got %d elements of %v, want %d", len(values), got, len(want))
		return false
	}
	scale := newScale(t, got.DType(), want, values)
	var report differences
	for i := range want {
		d := difference{at: i, want: want[i], got: values[i], abs: math.Abs(values[i] - want[i]), ulps: scale.ulps(i)}
		if !d.within(tol) {
			report.add(d)
		}
	}
	if report.count == 0 {
		return true
	}
	t.Errorf("tensortest: %d of %d elements of %v are not within %v\nfirst %s\nworst %s",
		report.count, len(want), got, tol, report.first.text(got.Shape()), report.worst.text(got.Shape()))
	return false
}

// scale measures distances in representable values of one dtype.
type scale struct {
	want, got []int64 // positions on the line of representable values
}

func newScale(t TB, d tensor.DType, want, got []float64) scale {
	t.Helper()
	return scale{want: positions(t, d, want), got: positions(t, d, got)}
}

// positions returns where the values, rounded to d, lie on the line of d's
// representable values; the two zeros lie at 0.
func positions(t TB, d tensor.DType, values []float64) []int64 {
	t.Helper()
	out := make([]int64, len(values))
	if len(values) == 0 {
		return out
	}
	x := over(t, d, words(len(values)*d.Size()))
	if err := x.SetFloat64s(values); err != nil {
		t.Fatalf("tensortest: %v", err)
	}
	mem, size := memory(x), d.Size()
	for i := range out {
		bits := pattern(mem[i*size : (i+1)*size])
		switch {
		case d == tensor.U8 || d == tensor.Bool:
			out[i] = int64(bits)
		case !d.IsFloat():
			out[i] = int64(values[i])
		default:
			sign := uint64(1) << (8*size - 1)
			out[i] = int64(bits &^ sign)
			if bits&sign != 0 {
				out[i] = -out[i]
			}
		}
	}
	return out
}

// pattern returns the bits of one element.
func pattern(element []byte) uint64 {
	switch len(element) {
	case 1:
		return uint64(element[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(element))
	case 4:
		return uint64(binary.NativeEndian.Uint32(element))
	default:
		return binary.NativeEndian.Uint64(element)
	}
}

func (s scale) ulps(i int) uint64 {
	if s.got[i] >= s.want[i] {
		return uint64(s.got[i]) - uint64(s.want[i])
	}
	return uint64(s.want[i]) - uint64(s.got[i])
}

type difference struct {
	at        int
	want, got float64
	abs       float64
	ulps      uint64
}

func (d difference) within(tol Tolerance) bool {
	switch {
	case math.IsNaN(d.want) || math.IsNaN(d.got):
		return math.IsNaN(d.want) && math.IsNaN(d.got)
	case math.IsInf(d.want, 0) || math.IsInf(d.got, 0):
		return d.want == d.got || d.overflowed(tol)
	default:
		return d.abs <= tol.Abs+tol.Rel*math.Abs(d.want) || d.want == d.got || tol.ULP > 0 && d.ulps <= uint64(tol.ULP)
	}
}

// overflowed reports whether want is finite only because it has more precision
// than got: rounded to got's dtype it is the infinity that got is.
func (d difference) overflowed(tol Tolerance) bool {
	return tol.ULP > 0 && d.ulps == 0
}

// severity orders differences: a NaN or an infinity on one side is the worst.
func (d difference) severity() float64 {
	if math.IsNaN(d.abs) {
		return math.Inf(1)
	}
	return d.abs
}

func (d difference) text(shape tensor.Shape) string {
	return fmt.Sprintf("at %v: got %.9g, want %.9g, off by %.3g or %d ulp", coordinates(shape, d.at), d.got, d.want, d.abs, d.ulps)
}

type differences struct {
	count        int
	first, worst difference
}

func (r *differences) add(d difference) {
	if r.count == 0 {
		r.first, r.worst = d, d
	} else if d.severity() > r.worst.severity() {
		r.worst = d
	}
	r.count++
}
