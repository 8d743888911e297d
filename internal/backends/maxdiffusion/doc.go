// Package maxdiffusion runs MaxDiffusion: it finds the source tree and its version, and the program
// that trains the model.
//
// # Concepts
//
// MaxDiffusion has a program for each family of models, wan and flux. The program reads a YAML file
// of the parameters of the module without those of the runtime; override_model holds values that it
// takes on its command line. MaxDiffusion is usually installed as a package, so a source tree is
// not required.
//
// # Concurrency
//
// An adapter belongs to one goroutine.
//
// # Errors
//
// A model of an unknown family and parameters of the wrong type are reported with the place they
// were written at.
package maxdiffusion
