// Package opstest checks implementations of ops. It compares any impl case by case with an oracle
// that the caller provides, usually the reference source.
//
// # Concepts
//
// A Kit holds the cases of some ops. They lie beside the ops, in packages such as normtest, and
// package opscases has them all.
//
// Run runs one impl in the cases of its op; RunAll does so for each impl of a source. A case is a
// call with operands, which are made separately, but equal, for the oracle and for the impl under
// test. The cases cover empty, tiny, odd and larger shapes, strided views, the aliasing that the op
// allows, each compute dtype, and NaN and Inf. After each call
//
//   - the written operands must be within the op's tolerance of the oracle's result,
//   - the operands that are only read must be unchanged byte for byte,
//   - the guard bands around every operand, and the gaps of strided ones, must be intact.
//
// An impl may decline a case with an error that wraps opregistry.ErrUnsupported if it has written
// nothing: the case is skipped and counted. MustServe turns declines into failures. Every other
// error and every panic is a failure.
//
// Some cases have the sizes of models: one length as in a model and small ones beside it, or with
// Thorough all; WithCalls adds calls that a program made. Where the oracle would take too long,
// some parts of the results are compared, and invariants of the whole; Result.Sampled counts those
// cases.
//
// The cases run once with one worker and once with several, on operands that hold other bytes
// before they are written and, if the impl declares its determinism, lie elsewhere. The results
// must have the same bits; Irreproducible drops that requirement for libraries with their own
// threads, and WithTolerance widens the tolerance for those that round otherwise. Some cases then
// run after other calls at the same addresses, with GuardPages beside pages that must not be
// touched, and at the same time on one Exec and on several. Some are changed by rules that hold
// for every op: operands lie at other alignments or have gaps, a result is one of the operands
// that it may be, one operand has NaN or an infinity, an argument has another value that matters,
// and axes and lists become as long as those of models. Results of 64 elements or more must not be
// off on average.
//
// Verify runs the same cases outside a Go test and returns the results.
//
// A Workload is one case that is called again and again, to measure impls side by side and to see
// what many calls leave behind. Try makes a few calls of an impl that is not trusted yet, without
// an oracle.
//
// GradCheck compares an impl of a backward op with central differences of a forward oracle in f64.
// It finds mistakes that the oracle of the backward op shares.
//
// A vendor's test is
//
//	func TestConformance(t *testing.T) {
//		opscases.All().RunAll(t, openblas.Source(), reference.Source())
//	}
//
// # Concurrency
//
// The functions run sub-tests in order and share no state. A Workload serves one caller at a time.
//
// # Errors
//
// Failures are reported to the test that is passed in, under the name of the case: the dtype, then
// what is special about the call.
package opstest
