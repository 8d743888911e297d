// Package loader opens shared libraries and calls the C functions in them,
// without cgo. It is the only package that knows how that is done.
//
// # Concepts
//
// Open tries names in order and returns a Library. Symbol finds the address of
// a function, Call calls an address with integers and pointers, and Bind makes a
// typed Go function of a symbol for everything else, such as floats by value.
// A Call costs about as much as a cgo call; a bound function costs several times
// that and allocates, so it belongs in set-up code.
//
// A Library is never closed: a library that owns threads or thread-local state
// does not survive that. C code runs in this process: a fault in it ends the
// process and cannot be recovered. C code must not keep a Go pointer past the
// call it was given in.
//
// A library that changes how floating-point numbers are rounded, or flushes small ones to zero,
// would change the results of everything that its thread computes later. Open undoes what
// constructors do, and a Guard what a call does; both say what it was.
//
// An Executor runs functions on a fixed set of OS threads, for libraries that
// keep state for each thread that calls them. The hand-over to another OS thread
// costs tens of microseconds; a library that does not mind who calls is better
// bounded by a channel of call blocks.
//
// SetDefaultEnv sets a variable that a library will read while it is loaded.
//
// A name is passed to the system's loader as it is: a bare name is searched in
// the system's folders. Names that come from a user are checked by the caller.
//
// Libraries can be opened on linux and darwin on amd64 and arm64. Elsewhere, and
// with the build tag nopurego (for a static binary), Open returns ErrPlatform.
//
// # Concurrency
//
// Everything may be used from many goroutines. The text of an error belongs to
// the call that failed, also when many fail at the same time.
//
// # Errors
//
// Open returns *OpenError with every name that was tried and why it was not
// opened, or ErrPlatform. Symbol and Bind return an error that wraps
// ErrNoSymbol. Do returns ErrClosed after Close.
package loader
