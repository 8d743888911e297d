// Package moe has the ops of a mixture of experts: the router with its auxiliary loss, the
// permutation of tokens to experts and back, and the padding of what each expert receives.
//
// Package ops says what holds for every op of the catalogue.
package moe
