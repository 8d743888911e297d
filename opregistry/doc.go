// Package opregistry holds what every other package agrees on: what an op is,
// what an implementation of it (an impl) is, and which impls exist.
//
// # Concepts
//
// An Op is a typed handle: a name, an argument struct and a schema that
// validates arguments and says which operands are read, written or updated in
// place. An Impl is one function that computes an op, with its kind (flagos,
// vendor or reference), its vendor and its priority. A Source is a named set of
// impls that is registered as a whole. A Registry collects sources and
// publishes immutable Snapshots; which impl a call uses is decided by package
// opmanager, never here.
//
// Ops are destination-passing: the caller owns every operand, outputs included.
// An impl keeps no operand past its return and takes scratch memory and workers
// from the Exec it is given.
//
// # Concurrency
//
// Op handles and Snapshots are immutable. A Registry is safe for concurrent use;
// readers of its current Snapshot take no lock. Impl functions are called from
// many goroutines at once unless their documentation says otherwise.
//
// # Errors
//
// ErrUnsupported is returned by an impl that declines before it has written
// anything. *ArgError is a caller's mistake and is found before any impl runs.
// *DuplicateError and *ImplError say which op and impl they are about.
package opregistry
