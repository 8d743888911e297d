// Package unigram encodes words by a unigram language model: of all ways to write a word as tokens
// it takes the one whose scores, logarithms of probabilities, have the greatest sum.
//
// A Model is immutable and safe for concurrent use.
package unigram
