// Package python is shared by the backends of Python frameworks. Its trainer starts the framework
// and follows its log.
//
// # Concepts
//
// A Framework says how to start it and how to read a step from a line of its log. The trainer
// acquires the run directory, starts the processes with package launch, and passes each step to the
// same observers and files as a run of the native backend: metrics.jsonl, loss.png, TensorBoard.
// The output of each rank is in ranks/ below the run directory.
//
// With several nodes primus runs on each, and the one that sees the steps owns the run directory.
//
// # Concurrency
//
// A trainer belongs to one goroutine.
//
// # Errors
//
// The failure of a process is a *launch.Failure. When the context ends, the error is
// backend.ErrInterrupted.
package python
