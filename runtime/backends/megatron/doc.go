// Package megatron plans runs of Megatron-LM: where its tree is, which version it has, what its
// arguments are.
//
// # Concepts
//
// The arguments of Megatron are the parameters of the module, which have its names, with the place
// of this process in the job and the rewrites of the patches of this package. Megatron fills in its
// own defaults. The Python process is not started.
//
// # Concurrency
//
// An adapter belongs to one goroutine.
//
// # Errors
//
// Parameters of the wrong type are reported with the place they were written at.
package megatron
