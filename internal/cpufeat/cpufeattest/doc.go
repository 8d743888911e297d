// Package cpufeattest runs tests with the kernels of lesser machines.
//
// # Concepts
//
// Each takes the features of the running machine away one by one, the greatest first.
//
// # Concurrency
//
// What is taken away is so for the whole process: tests that use the package do not run
// in parallel with others of theirs.
//
// # Errors
//
// There are none.
package cpufeattest
