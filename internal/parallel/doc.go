// Package parallel runs the parts of a task on a fixed set of workers.
//
// # Concepts
//
// A Pool has w workers: the goroutine that calls Run and w-1 helpers. Parts are
// handed out by an atomic counter, so the split of the work into parts is the
// kernel's choice and never depends on the number of workers: results are the
// same bit for bit for any Pool.
//
// A helper that has done its share looks out for the next job for a few
// microseconds and then sleeps. An offer that a sleeping helper has not taken by
// the time the caller runs out of parts is taken back, so a small task never
// waits for a helper to wake up.
//
// A Kernel is a function over parts whose arguments reach the workers without an
// allocation.
//
// # Concurrency
//
// A Pool is safe for concurrent use; calls that find the helpers busy run their
// parts in the caller, in order, and so does Run inside a part.
//
// # Errors
//
// A part that panics stops the hand-out of further parts; when all running parts
// have returned, Run panics in the caller with a *Panic that holds the first
// value and the stack of the worker. A part that calls runtime.Goexit in a helper
// counts as one that panics; in the caller it ends the caller's goroutine, as it
// does without a pool. The pool stays usable.
package parallel
