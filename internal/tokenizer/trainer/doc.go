// Package trainer makes tokenizers: byte-level byte pair encoding learned from text.
//
// # Concepts
//
// A Trainer counts the words of the texts that it is given. Train then merges the most frequent
// pairs until the vocabulary has its size, and returns the tokenizer.json. Equal texts in one order
// give equal files, whatever the machine.
//
// # Concurrency
//
// A Trainer belongs to one goroutine.
package trainer
