// Package plugin turns shared libraries that export the interface of package abi
// into sources of ops.
//
// # Concepts
//
// Locate finds the file for a name, and Inspect checks it before any of its code runs. Open opens a
// library, checks the description of its ops and returns a Plugin; its Source is registered like
// any other. The arguments of an op are passed as a flat list in the order of their indexes, which
// the generated header primus_op_args.h defines. A library states a hash of this layout for each op
// and is refused if it was compiled against another layout.
//
// An op that this program's catalogue does not have is left out and listed, so that
// a plugin may be newer than the program.
//
// # Concurrency
//
// Functions of an op that is thread-safe are called directly; those of one with the flag
// same_thread on a single thread of the plugin; all others one at a time.
//
// # Errors
//
// A fault in the description, such as a pointer to memory that cannot be read, is an error that
// names the library, the op and the field. What the functions do cannot be checked in this process:
// package sandbox opens a library in a child process first.
package plugin
