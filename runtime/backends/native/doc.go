// Package native is the training backend written in Go. It trains decoders of several families with
// AdamW, and every computation is an op of the manager.
//
// # Concepts
//
// Adapter turns the parameters of a module into Args. Its trainer acquires the run directory,
// builds model, optimizer and data, continues from a checkpoint if there is one, and trains. The
// parts are the packages model, optim, data, checkpoint, rundir and tensorboard below this one.
// Package patches has the patches of the backend.
//
// A step computes the gradients of a global batch, clips them and updates the weights. If an op
// fails and the manager cannot fall back (operands updated in place, saved state of another impl),
// the step is computed again from its beginning, since weights change only at its end. The same
// seed, impls and data give the same losses, bit for bit, with and without an interruption, as far
// as the impls declare it: on CPUs of the same class, with any number of workers.
//
// # Concurrency
//
// A trainer belongs to one goroutine.
//
// # Errors
//
// A run whose loss or gradient is NaN or infinite ends with a *NonFiniteError, which names the step
// and the op that caused it.
package native
