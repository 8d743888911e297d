// Package rope has the rotary position embedding of Q and K, for tensors of their own and for the
// packed product of a QKV projection.
//
// Package ops says what holds for every op of the catalogue.
package rope
