// Package loader opens shared libraries and calls the C functions in them, without cgo.
//
// # Concepts
//
// Open tries names in order and returns a Library. Symbol finds the address of a function. Call
// calls an address with integers and pointers. For everything else, such as floats by value, Bind
// makes a typed Go function of a symbol. Call costs about as much as a cgo call; a bound function
// costs several times that and allocates, so it belongs in set-up code.
//
// A Library is never closed: a library that owns threads or thread-local state does not survive
// that. C code runs in this process: a fault in it ends the process and cannot be recovered. C code
// must not keep a Go pointer after the call that received it.
//
// A library that changes how floating-point numbers are rounded, or flushes small ones to zero,
// would change the results of everything that its thread computes later. Open undoes the changes of
// constructors, and a Guard those of a call; both report what they were.
//
// An Executor runs functions on a fixed set of OS threads, for libraries that keep state for each
// thread that calls them. The hand-over to another OS thread costs tens of microseconds. For a
// library that may be called from any thread, a channel of call blocks is a cheaper bound.
//
// SetDefaultEnv sets a variable that a library will read while it is loaded.
//
// A name is passed to the system's loader unchanged: a bare name is searched in the system's
// folders. Callers must check names that come from a user.
//
// Libraries can be opened on linux and darwin on amd64 and arm64. Elsewhere, and with the build tag
// nopurego (for a static binary), Open returns ErrPlatform.
//
// # Concurrency
//
// Everything may be used from many goroutines. An error has the text of its own call, even when
// many calls fail at the same time.
//
// # Errors
//
// Open returns *OpenError with every name that was tried and why it was not opened, or ErrPlatform.
// Symbol and Bind return an error that wraps ErrNoSymbol. Do returns ErrClosed after Close.
package loader
