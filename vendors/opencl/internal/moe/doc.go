// Package moe holds the impls of the router of a mixture of experts, of its auxiliary loss and of
// the permutation of tokens to experts and back.
package moe
