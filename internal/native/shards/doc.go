// Package shards writes and reads checkpoints of which each rank has a part.
//
// A Shard is the pieces of weights that a rank has. Its Spread makes a File of them, and Whole one
// of tensors that every rank has. Save writes files together with the other ranks, Begin does so
// while the caller goes on, and Load fills the pieces from a file again, whichever ranks wrote it.
//
// # Concurrency
//
// The methods of a Job are called by one goroutine, on all ranks in the same order. A Shard is not
// changed after it was made.
package shards
