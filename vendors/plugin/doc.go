// Package plugin turns shared libraries that export the interface of package abi
// into sources of ops.
//
// # Concepts
//
// Locate finds the file that a name means, and Inspect judges it before any of its code
// runs. Open opens a library, checks the description of its ops and returns a Plugin;
// Source registers it like any other source. The arguments of an op cross over as a
// flat list in the order of their indexes, which the generated header primus_op_args.h has, too. A
// library repeats a hash of them for each op and is refused when it was compiled for others.
//
// An op that this program's catalogue does not have is left out and listed, so that
// a plugin may be newer than the program.
//
// # Concurrency
//
// Functions of an op are called directly when it is thread-safe, from one thread of
// the plugin's own when it asks for that, and one at a time otherwise.
//
// # Errors
//
// Everything that is wrong with the description is an error that names the library,
// the op and the field; so are pointers that lead to memory that cannot be read. What
// functions do cannot be checked from here: package sandbox opens a library in a child
// process first.
package plugin
