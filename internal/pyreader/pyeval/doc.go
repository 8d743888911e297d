// Package pyeval evaluates Python source files without Python, as far as their text determines the
// result.
//
// # Concepts
//
// A Machine imports modules of a source tree in Python's order and runs their top level. Values
// from elsewhere (libraries, machines, command lines) are symbolic: each is an External under its
// dotted name, and the result of a computation with one is an Opaque with the source of the
// expression. A test may be true, false or unknown; if it is unknown, both branches are evaluated,
// and values that differ after them become a Union. So a result that is a constant is the same in
// every run, and any other names what it depends on.
//
// Hooks are called for every call and for every store to an attribute or an item. With them callers
// find registrations and the changes that functions make.
//
// # Concurrency
//
// A Machine belongs to one goroutine.
//
// # Errors
//
// A file that cannot be read or parsed is in Machine.Faults; its module is then an External.
// Evaluation itself cannot fail: it stops after a number of steps and adds that to Machine.Faults.
package pyeval
