// Package bpe encodes words by byte pair encoding.
//
// # Concepts
//
// A word begins as its characters or bytes, the symbols. Of all adjacent pairs of symbols that a
// merge joins, the one with the lowest rank is joined, the leftmost of equal ones, until no merge
// applies.
//
// # Concurrency
//
// A Model is immutable and safe for concurrent use.
package bpe
