// Package layout divides a model among ranks: which part of a weight a rank has, and how rows of
// activations reach the rank that has the weights for them.
//
// # Errors
//
// A failed collective is a *world.Error, after which the run has to end on all ranks.
package layout
