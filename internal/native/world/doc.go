// Package world is the job that a run of the native backend belongs to: the ranks that train one
// model together.
//
// # Concepts
//
// Each rank has a World, and all call its methods in the same order: a method returns when this
// rank has its part of the result. Whatever is sent goes through the collectives of the manager, so
// that they can be explained and measured. A World of one rank calls no op.
//
// # Errors
//
// A failed collective is an *Error. The ranks no longer agree on what comes next, so that nothing
// can be repeated: the run has to end on all of them.
package world
