// Package megatron runs Megatron-LM: it finds the source tree and its version and makes the
// arguments.
//
// # Concepts
//
// The arguments of Megatron are the parameters of the module, which have its names, with the place
// of this process in the job and the rewrites of the patches of this package. Megatron fills in its
// own defaults.
//
// # Concurrency
//
// An adapter belongs to one goroutine.
//
// # Errors
//
// Parameters of the wrong type are reported with the place they were written at.
package megatron
