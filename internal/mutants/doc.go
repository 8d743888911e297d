// Command mutants measures the conformance kit: it builds wrong kernels by rules and counts those
// that the kit refuses.
//
// # Concepts
//
// A mutant is an impl with one mistake. Known mutants have mistakes that real libraries had, and
// are written by hand; a rule makes the same mistake in impls of many ops. A seed draws the ops of
// each rule.
//
// A mutant that passes is a survivor. Its results either differed from the right ones in no case of
// the kit, or by less than the bounds of the op.
package main
