// Package words encodes texts word by word.
//
// # Concepts
//
// A Model encodes a word without looking at what surrounds it. A Cache keeps the ids of words that
// were met before, and a Cutter divides texts that have no words into parts that can be encoded
// like words.
//
// # Concurrency
//
// A Cutter is safe for concurrent use. A Cache belongs to one goroutine.
package words
