package tensortest

import "github.com/primus-fl/primus/tensor"

// Tolerance says how far apart two values may be.
type Tolerance = tensor.Tolerance

// Close reports whether every element of got is within tol of want's, and if not, fails the test
// with the first and the worst difference. The shapes must be equal; the dtypes may differ, so that
// want can have more precision than got. NaN, infinities, zeros and large integers are compared as
// tensor.Compare says.
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
