// Package philox makes the random decisions of dropout, many at a time.
//
// # Concepts
//
// The numbers are those of ops.RandomBits, so that whoever uses them agrees with every
// other impl bit for bit. AtLeast compares numbers that follow each other with a
// threshold and stores one bit for each; Select keeps the elements of a vector whose
// bits are set. Both have a version in plain Go and on amd64 versions for AVX2 and
// AVX-512, which all give the same results. The build tag noasm leaves the assembly out.
//
// # Concurrency
//
// The functions may be called from any goroutine. Under the race detector the plain Go
// versions run, which it can see into.
//
// # Errors
//
// There are none. A slice that is too short is a bug of the caller and panics.
package philox
