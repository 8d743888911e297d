// Package megatronbridge runs Megatron-Bridge: it finds the source tree and its version and chooses
// the recipe.
//
// # Concepts
//
// A run is a recipe in a flavor, called with the parameters of the module. Parameters that name
// datasets are brought into one form.
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
