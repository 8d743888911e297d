// Package dummy is the smallest complete training backend: it goes through the whole lifecycle and trains nothing. It is the
// worked example of docs/writing-a-backend.md.
//
// # Concepts
//
// Adapter is in-tree, so there is no source tree to find. Its arguments are the parameters of the module as they are. The
// trainer calls an empty step train_iters times, and has one extension point for it.
//
// # Concurrency
//
// A trainer belongs to one goroutine.
//
// # Errors
//
// Training before Init is an error, as are a stage other than pretrain and a train_iters that is no number.
package dummy
