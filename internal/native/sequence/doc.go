// Package sequence divides the tokens of a sequence among ranks, and says which of them attention
// brings together.
//
// # Concepts
//
// A sequence is cut into two chunks for each rank. A Share is the chunks of one rank: one from the
// beginning and the one that is as far from the end, so that causal attention is as much work for
// each rank. The tokens of a rank are those of its first chunk, and after them those of its second
// one. Places of these tokens are local; places in the sequence are global.
package sequence
