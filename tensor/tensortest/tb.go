package tensortest

// TB is what the functions of this package need of a test. *testing.T,
// *testing.B and *testing.F have it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	// Fatalf reports like Errorf and ends the test.
	Fatalf(format string, args ...any)
}
