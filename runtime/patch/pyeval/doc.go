// Package pyeval evaluates Python source files without Python, as far as they can be known from
// their text.
//
// # Concepts
//
// A Machine imports modules of a source tree in Python's order and runs their top level. What comes
// from elsewhere (libraries, machines, command lines) is not run: it is an External under its
// dotted name, and what is computed of it is an Opaque with the source of the expression.
// Conditions are decided in three values: where a test is neither true nor false both ways are
// gone, and values that differ after them become a Union. So whatever is stated as a constant is
// one in every run, and the rest says what it depends on.
//
// Hooks sees every call and every store to an attribute or an item, which is how callers find
// registrations and what functions change.
//
// # Concurrency
//
// A Machine belongs to one goroutine.
//
// # Errors
//
// A file that cannot be read or parsed is in Machine.Faults; the module is then an External.
// Evaluation itself cannot fail: it stops after a number of steps and says so in Machine.Faults
// too.
package pyeval
