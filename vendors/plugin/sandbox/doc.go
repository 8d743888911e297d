// Package sandbox runs code of plugins in child processes of this program: to find
// out whether a library can be trusted with this process, and to keep it out of
// this process for good.
//
// # Concepts
//
// A library that crashes or hangs takes its process with it. Probe therefore loads
// it first in a child, lets every op say whether it can run, has those that can called
// a few times, and returns what the child reports, or how it ended. The child is this
// program with a command line that leads to ServeProbe.
//
// Isolate gives a plugin a process for the life of this one, whose command line leads
// to Serve. A call is a message in shared memory with copies of the operands; a socket
// carries its length and the outcome. A process that has ended or that does not answer
// is a failed call that has touched no operand, and a later call starts another one.
//
// # Concurrency
//
// Everything may be used from many goroutines. The calls of an isolated plugin are made
// one at a time.
//
// # Errors
//
// What a library does wrong is an error that names the library, the function of it
// that ran, and the signal, exit status or time limit that ended the child.
package sandbox
