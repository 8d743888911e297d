// Package parallel runs the parts of a task on a fixed set of workers.
//
// # Concepts
//
// A Pool has w workers: the goroutine that calls Run and w-1 helpers. An atomic counter hands out
// parts. The kernel chooses how work is split into parts, independently of the number of workers,
// so results have the same bits for any Pool.
//
// A helper that has finished polls for the next job for 50 µs and then sleeps. If a sleeping helper
// has not taken an offer by the time the caller runs out of parts, the offer is withdrawn, so a
// small task never waits for a helper to wake up.
//
// A Kernel is a function over parts whose arguments reach the workers without an allocation.
//
// # Concurrency
//
// A Pool is safe for concurrent use. Calls that find the helpers busy run their parts in the
// caller, in order, and so does Run inside a part.
//
// # Errors
//
// When a part panics, no further parts are started; when all running parts have returned, Run
// panics in the caller with a *Panic that holds the first value and the stack of the worker. A part
// that calls runtime.Goexit in a helper counts as one that panics; in the caller it ends the
// caller's goroutine, as it does without a pool. The pool stays usable.
package parallel
