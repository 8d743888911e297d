// Package dummy is the smallest complete training backend. It goes through the whole lifecycle and
// trains nothing. docs/tutorials/writing-a-backend.md explains it.
//
// # Concepts
//
// The backend is compiled in, so there is no source tree to find. Its arguments are the parameters
// of the module as they are. The trainer calls an empty step train_iters times, and has one
// extension point for it.
//
// # Concurrency
//
// A trainer is not safe for concurrent use.
//
// # Errors
//
// Training before Init is an error, as are a stage other than pretrain and a train_iters that is
// not a number.
package dummy
