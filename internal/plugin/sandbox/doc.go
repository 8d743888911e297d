// Package sandbox runs code of plugins in child processes of this program, either once, to find out
// whether a library is safe to load, or for the whole run, to isolate it.
//
// # Concepts
//
// A library that crashes or hangs takes its process with it. Probe therefore loads it in a child
// first, asks every op whether it can run, calls those that can a few times, and returns the report
// of the child or how the child ended. The child is this program with a command line that calls
// ServeProbe.
//
// Isolate runs a plugin in another process for the life of this one; the command line of that
// process calls Serve. A call is a message in shared memory with copies of the operands; a socket
// carries its length and the outcome. If the process ends or does not answer, the call fails
// without having touched an operand, and a later call starts another process.
//
// # Concurrency
//
// Everything may be used from many goroutines. The calls of an isolated plugin are made
// one at a time.
//
// # Errors
//
// A fault of a library is an error that names the library, the function that ran, and the signal,
// exit status or time limit that ended the child.
package sandbox
