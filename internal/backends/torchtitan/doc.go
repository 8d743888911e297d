// Package torchtitan runs TorchTitan: it finds the source tree and its version and writes the job
// configuration.
//
// # Concepts
//
// The job configuration has sections, so of the parameters of a module the mappings are arguments
// and the rest is for the runtime. TorchTitan fills in its own defaults.
//
// # Concurrency
//
// An adapter belongs to one goroutine.
//
// # Errors
//
// Parameters of the wrong type are reported with the place they were written at.
package torchtitan
