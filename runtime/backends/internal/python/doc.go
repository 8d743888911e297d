// Package python is what the backends of Python frameworks share: a trainer that starts the
// framework and follows its log.
//
// # Concepts
//
// A Framework says how it is started and what a line of its log tells about a step. The trainer of
// a TrainerClass takes the run directory, starts the processes as package launch does, and hands
// each step to the same observers and files as a run of the native backend: metrics.jsonl,
// loss.png, TensorBoard. What each rank writes is in ranks/ below the run directory.
//
// With several nodes each has a program of its own, and the one that sees the steps owns the run
// directory.
//
// # Concurrency
//
// A trainer belongs to one goroutine.
//
// # Errors
//
// The failure of a process is a *launch.Failure; the end of the context is backend.ErrInterrupted.
package python
