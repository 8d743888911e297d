// Package torchtitan plans runs of TorchTitan: where its tree is, which version it has, what its
// job configuration is.
//
// # Concepts
//
// The job configuration has sections, so of the parameters of a module the mappings are arguments
// and the rest is for the runtime. TorchTitan fills in its own defaults. The Python process is not
// started.
//
// # Concurrency
//
// An adapter belongs to one goroutine.
//
// # Errors
//
// Parameters of the wrong type are reported with the place they were written at.
package torchtitan
