// Package unsupported knows the parameters of Megatron that affect what a run computes and that the
// native trainer does not have: which values of them ask for what it does all the same.
//
// # Concurrency
//
// The functions keep no state.
package unsupported
