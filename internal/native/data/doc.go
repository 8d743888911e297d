// Package data turns text into the batches that a language model trains on.
//
// # Concepts
//
// Find lists the files of a Corpus (a file, a directory, a glob, or the Go
// standard library's sources). Its method Load encodes them with a tokenizer and
// returns Tokens: one stream of all files with a separator between them. The stream is kept in a
// cache file whose name and header depend on the files' paths, sizes and times,
// the tokenizer and the limit, so that a stale cache is never read.
//
// NewSet cuts the stream into windows of seq_length+1 tokens, seq_length apart: the inputs are the
// first seq_length of them, the targets the last. Windows are grouped into blocks that share no
// token; evenly spaced blocks are held out for validation, so that no token of a validation window
// occurs in a training window.
//
// A Sampler visits the training windows in an order that depends on the seed and on the epoch, each
// once per epoch. Its whole state is the position, the number of samples consumed: the order is a
// keyed permutation that is computed, not stored. A Validation visits a fixed, evenly spaced choice
// of the held-out windows.
//
// # Concurrency
//
// Tokens and Set are immutable and may be shared. A Sampler and a Validation
// belong to one goroutine each.
//
// # Errors
//
// Errors name the path or the parameter, what was given, what was expected and what to do. A stream
// that is too short for the windows gives a *TooShortError. Problems of the cache are warnings in
// the Report, because the tokens are available without it.
package data
