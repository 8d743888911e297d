// Package attention holds the impls of fused attention, forward and backward: the scores of one
// block of queries and one block of keys exist at a time, in scratch. It also has those of the
// gated delta net, of the cache of keys and values, and of the layouts and corrections of packed
// sequences.
package attention
