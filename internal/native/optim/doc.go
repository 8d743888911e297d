// Package optim has the optimizers of the native trainer, the norm and the clipping of gradients,
// and the schedule of the learning rate. All arithmetic on weights and gradients is done by
// dispatched ops.
//
// # Concurrency
//
// An Optimizer and Gradients belong to one goroutine; a Schedule is a value.
//
// # Errors
//
// Validate returns every fault of a configuration, each beginning with the key it is about.
package optim
