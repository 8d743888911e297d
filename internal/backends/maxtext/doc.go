// Package maxtext runs MaxText: it finds the source tree and its version, writes the configuration
// and sets the environment.
//
// # Concepts
//
// The arguments of MaxText are the parameters of the module without those of the runtime;
// override_model holds values that MaxText takes on its command line. The environment gets defaults
// for XLA and for AMD GPUs.
//
// # Concurrency
//
// An adapter belongs to one goroutine.
//
// # Errors
//
// Parameters of the wrong type are reported with the place they were written at.
package maxtext
