// Package oracle compares the sources of ops with PyTorch, which nobody here wrote.
//
// Its tests start PyTorch once, in a process of its own, and give it the cases of the
// conformance kit and some larger ones. PyTorch computes them in float64 from the
// operands as they are stored, whatever their dtype, so that its results are the truth
// up to the rounding of the impl under test. testdata/oracle holds that side, and
// encode_test.go and process_test.go the way there: any op of the catalogue can be
// asked for, because arguments are passed on as their structs have them.
//
// The tests skip without PyTorch.
package oracle
