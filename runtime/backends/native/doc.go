// Package native is the training backend that is written in Go: decoders of several families trained by AdamW,
// every operation of them an op of the manager.
//
// # Concepts
//
// Adapter turns the parameters of a module into Args. The trainer it makes takes the run directory, builds model,
// optimizer and data, goes on from a checkpoint when there is one, and trains. The packages below this one hold the parts:
// model, optim, data, checkpoint, rundir and tensorboard. Package patches has the patches of the backend.
//
// A step computes the gradients of a global batch, clips them and updates the weights. When an op fails in a way that the
// manager may not repair by itself (operands updated in place, saved state of another impl), the step is computed again
// from its beginning: weights change only at its end. The same seed, impls and data give the same losses bit for bit,
// across an interruption and as far as the impls declare it: on CPUs of one class, for any number of workers.
//
// # Concurrency
//
// A trainer belongs to one goroutine.
//
// # Errors
//
// *NonFiniteError stops a run whose loss or gradient is NaN or infinite and names the step and the op at fault.
package native
