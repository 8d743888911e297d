// Package explore reads the patches of a checkout of Primus without running any of it.
//
// # Concepts
//
// Open imports the packages of patches of every backend as Python would and lists each registration
// as a Record: when it applies, and what its handler changes, which is found by evaluating the
// handler with everything of libraries left symbolic.
//
// # Concurrency
//
// A Checkout belongs to one goroutine.
//
// # Errors
//
// Open fails where there is no checkout. Files of it that cannot be read are in Checkout.Faults;
// what a registration states in a way that only Python could know is in Record.Unknown.
package explore
