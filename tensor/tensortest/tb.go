package tensortest

// TB is the part of testing.TB that this package needs. *testing.T, *testing.B and *testing.F
// implement it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	// Fatalf reports like Errorf and ends the test.
	Fatalf(format string, args ...any)
}
