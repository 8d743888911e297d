// Package megatronbridge plans runs of Megatron-Bridge: where its tree is, which version it has,
// which recipe it runs.
//
// # Concepts
//
// A run is a recipe in a flavor, called with the parameters of the module. Parameters that name
// data sets are brought into one form. The Python process is not started.
//
// # Concurrency
//
// An adapter belongs to one goroutine.
//
// # Errors
//
// A module without recipe or flavor, and parameters of the wrong type, are reported with the place
// they were written at.
package megatronbridge
