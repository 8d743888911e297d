// Package tensortest helps tests of kernels: reproducible operands, operands between guard bands,
// comparison with a tolerance, and snapshots.
//
// A test of a kernel makes its inputs with Random and its outputs with Guarded or GuardedStrided,
// keeps Bytes of what must not change, runs the kernel, and then compares the result with Close and
// calls the check function of each output:
//
//	x := tensortest.Random(t, 1, tensor.F32, 4, 33)
//	y, intact := tensortest.Guarded(t, tensor.F32, 4, 33)
//	before := tensortest.Bytes(x)
//	kernel(y, x)
//	tensortest.Close(t, want, y, tensortest.Tolerance{ULP: 2})
//	intact(t)
//	assert.Equal(t, before, tensortest.Bytes(x))
//
// Guarded memory starts as NaN, and so do the guard bands of the floating-point dtypes: a kernel
// that reads what it should write, or reads past an end, produces a NaN that Close reports.
//
// # Concurrency
//
// The functions share no state and may be used from parallel tests. A check function reads the
// memory that it guards, so nothing may write there at the same time.
//
// # Errors
//
// Bad arguments end the test with Fatalf. A difference or a changed guard band is reported with
// Errorf, so that a test shows everything that is wrong with a kernel.
package tensortest
