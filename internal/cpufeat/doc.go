// Package cpufeat says which instruction sets the kernels of this project may use on the running
// machine.
//
// A Feature is a group of instruction-set extensions that one family of kernels needs together, so
// that a kernel asks one question. A feature is present only when the operating system saves its
// registers, too. Features are detected once, when the program starts; one that cannot be detected
// is absent.
//
// Has may be called from any goroutine and costs one load. Disable is for tests: it changes what
// the whole process sees, so tests that use it must not run in parallel with others of their
// package.
package cpufeat
