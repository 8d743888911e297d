// Package sandbox runs code of plugins in child processes of this program: to find
// out whether a library can be trusted with this process, and to keep it out of
// this process for good.
//
// # Concepts
//
// A library that crashes or hangs takes its process with it. Probe therefore loads
// it first in a child, lets every op say whether it can run, and returns what the
// child reports, or how it ended. The child is this program with a command line that
// leads to ServeProbe.
//
// # Concurrency
//
// Probe may be called from many goroutines.
//
// # Errors
//
// What a library does wrong is an error that names the library, the function of it
// that ran, and the signal, exit status or time limit that ended the child.
package sandbox
