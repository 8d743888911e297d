// Package philox computes the random decisions of dropout and the random numbers of stochastic
// rounding, many at a time.
//
// The numbers are those of random.Bits, so that all impls agree bit for bit. Numbers stores them,
// also those of other streams; AtLeast compares consecutive numbers with a threshold and stores one
// bit for each; Select keeps the elements of a vector whose bits are set. All have a version in
// plain Go and on amd64 versions for AVX2 and AVX-512, which all give the same results; the numbers
// of both widths come from one source, philox_amd64.h. The build tag noasm leaves the assembly out.
//
// The functions may be called from any goroutine. They report to the race detector what the
// assembly reads and writes. A slice that is too short is a bug of the caller and panics.
package philox
