// Package opbench measures implementations of ops side by side.
//
// # Concepts
//
// A Maker builds Cases: calls of ops with operands of some shape and dtype. Measure
// runs a Case on several impls, in turns, so that a machine that slows down slows all
// of them. Impls are called as they are, without an op manager: nothing falls back, and
// what an impl's Support rules out it does not run.
//
// # Concurrency
//
// A Maker and its Cases belong to one goroutine.
//
// # Errors
//
// An impl that is not available, declines or fails has the reason in its Result.
package opbench
