// Package loadertest compiles the C fixtures of tests.
//
// # Concepts
//
// A fixture is a C file that a test compiles into a shared library of its own. A test is
// skipped, with a reason, where there is no C compiler or libraries cannot be loaded.
//
// # Concurrency
//
// Everything may be used from many tests at the same time.
package loadertest
