// Package oracle compares the sources of ops with PyTorch, an independent implementation.
//
// Its tests start PyTorch once, in its own process, and send it the cases of the conformance kit
// and some larger ones. PyTorch computes them in float64 from the stored operands, whatever their
// dtype, so that its results are exact up to the rounding of the impl under test. The Python side
// is in testdata/oracle; encode_test.go and process_test.go talk to it. It can be asked for any op
// of the catalogue, because arguments are sent under the names of their struct fields.
//
// The tests skip without PyTorch.
package oracle
