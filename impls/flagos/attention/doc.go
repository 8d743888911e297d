// Package attention holds the impls of fused attention, forward and backward: the scores of one
// block of queries and one block of keys exist at a time, in scratch.
package attention
