// Package shards divides the state of the optimizer, and the work of saving, among the ranks of a
// job.
//
// # Concepts
//
// The weights of a model lie one after the other, see model.Flat. A Shard is the ranges of them
// that one rank updates, cut at the ends of weights into pieces, each a weight of the optimizer. A
// checkpoint does not show this: its tensors are whole, under the names of package model, and every
// rank writes the bytes that it has. So a run can continue with any number of ranks.
//
// # Errors
//
// Save returns an error on all ranks when one of them fails, and the checkpoint does not appear.
package shards
