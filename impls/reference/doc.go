// Package reference holds the oracle: one plain implementation of every op of the catalogue,
// written to be easy to check rather than fast.
//
// # Concepts
//
// Every impl copies its operands to float64, follows the formula of the op's documentation in
// package ops loop by loop, and rounds each result once when it stores it. Storage may be any
// compute dtype with any strides. Operands are read completely before anything is written, so every
// aliasing that an op allows is safe. The packages share no code with a fast implementation:
// a comparison could not find a mistake in shared code.
//
// Each family of ops has a package, as in the catalogue. Source returns the impls for registration
// under the id "reference.go", or "reference.local" for collectives of a job of one rank.
//
// # Concurrency
//
// The impls keep no state, start no goroutine and use neither the workers nor the scratch memory of
// the Exec, which may be nil. Results have the same bits in every call on one architecture. Calls
// on disjoint operands may run at the same time.
//
// # Errors
//
// The impls expect arguments that the op's Validate has accepted and panic on others. They decline
// operands outside host memory with an error that wraps opregistry.ErrUnsupported.
package reference
