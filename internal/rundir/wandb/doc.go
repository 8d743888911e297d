// Package wandb writes runs in the offline format of Weights & Biases.
//
// # Concepts
//
// A Writer makes a directory offline-run-TIME-ID with the file run-ID.wandb, which `wandb sync`
// uploads. The file is a log of LevelDB whose checksums are CRC-32 (IEEE), after a header of seven
// bytes; its records are protocol buffers (wandb_internal.Record): a header, the run with its
// configuration, the history of each step, and at the end the summary and the exit. Nothing is sent
// anywhere.
//
// # Concurrency
//
// A Writer belongs to one goroutine.
//
// # Errors
//
// After a failed write every further one returns the same error.
package wandb
