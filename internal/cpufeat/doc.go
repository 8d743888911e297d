// Package cpufeat says which instruction sets the kernels of this project may use
// on the running machine.
//
// # Concepts
//
// A Feature is a group of instruction-set extensions that one family of kernels
// needs together, so a kernel asks one question. A feature is present only when
// the operating system saves its registers, too. What is present is detected once,
// when the program starts.
//
// # Concurrency
//
// Has may be called from any goroutine and costs one load. Disable is for tests: it
// changes what the whole process sees, so tests that use it do not run in parallel
// with others of their package.
//
// # Errors
//
// There are none: a feature that cannot be detected is absent.
package cpufeat
