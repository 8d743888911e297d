package tensortest

import "github.com/primus-fl/primus/tensor"

// Tolerance says how far two values may be apart.
type Tolerance = tensor.Tolerance

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
	if n := got.NumElements(); n != len(want) {
		t.Errorf("tensortest: CloseTo: got %d elements of %v, want %d", n, got, len(want))
		return false
	}
	d, err := tensor.Compare(want, got, tol)
	if err != nil {
		t.Fatalf("tensortest: %v", err)
	}
	if d.Beyond == 0 {
		return true
	}
	at := func(m tensor.Mismatch) []int { return coordinates(got.Shape(), m.Index) }
	t.Errorf("tensortest: %d of %d elements of %v are not within %v\nfirst at %v: %v\nworst at %v: %v",
		d.Beyond, d.Elements, got, tol, at(d.First), d.First, at(d.Worst), d.Worst)
	return false
}
