// Package memory allocates the tensors of a model on a device: an Arena frees them together, a Pool
// lets equal blocks share them, and a Counter takes the place of a device to find out how much
// memory they need. Parts add up to what a run takes, which Limit bounds.
//
// With the build tag invariants, each tensor has a guard on both sides, and a write beside it is a
// panic.
package memory
