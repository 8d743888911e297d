// Package opregistry defines what every other package agrees on: what an op is, what an
// implementation of it (an impl) is, and which impls exist.
//
// # Concepts
//
// An Op is a typed handle: a name, an argument struct and a schema that validates arguments and
// says which operands are read, written or updated in place. An Impl is one function that computes
// an op, with its kind (flagos, vendor or reference), its vendor and its priority. A Source is a
// named set of impls that is registered as a whole. A Registry collects sources and publishes
// immutable Snapshots. Package opmanager decides which impl a call uses.
//
// Ops are destination-passing: the caller owns every operand, outputs included. An impl keeps no
// operand after it returns, and takes scratch memory and workers from the Exec that it receives.
//
// # Concurrency
//
// Op handles and Snapshots are immutable. A Registry is safe for concurrent use; readers of its
// current Snapshot take no lock. Impl functions are called from many goroutines at once unless
// their documentation says otherwise.
//
// # Errors
//
// An impl returns ErrUnsupported when it declines a call before it has written anything. *ArgError
// is a caller's mistake and is found before any impl runs. *DuplicateError and *ImplError name the
// op and the impl that they are about.
package opregistry
