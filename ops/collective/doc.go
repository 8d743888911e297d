// Package collective has the ops in which all ranks of a job take part.
//
// # Concepts
//
// A job has Ranks processes, and Rank, from 0, is the number of this one. Every rank calls the same
// ops in the same order, with operands of the same dtype and size and the same numbers, except for
// Rank; a call returns when the part of this rank is done. Nothing checks that the calls of
// different ranks fit together: ranks whose calls do not fit wait for each other without end, or
// fail.
//
// A part of the job can be a Group of its own, such as every second rank. It has its own order of
// calls: ranks that belong to several groups must not wait for each other in a circle.
//
// An impl that has begun a call cannot be replaced by another one for the rest of it, so impls
// decline a call by what is the same on all ranks.
//
// # Reductions
//
// The sum of bf16 or f16 numbers is computed in f32 and rounded once. The impl chooses the order in
// which ranks are added: it is the same in all calls with the same number of ranks and elements,
// and all ranks receive the same bits. A sum with a NaN is NaN; maxima and minima with a NaN are
// not specified.
//
// Package ops says what holds for every op of the catalogue.
package collective
