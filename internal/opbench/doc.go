// Package opbench measures implementations of ops side by side.
//
// # Concepts
//
// A Maker builds Cases: calls of ops with operands of some shape and dtype. Measure runs a Case on
// several impls by turns, so that a machine that becomes slower affects all of them. Impls are
// called directly, without an op manager: there is no fallback, and a call that an impl's Support
// rules out is not made. A Bench relates the times to what the machine reaches, and Plot draws
// them.
//
// # Concurrency
//
// A Maker and its Cases belong to one goroutine.
//
// # Errors
//
// The Result of an impl that is not available, declines or fails holds the reason.
package opbench
