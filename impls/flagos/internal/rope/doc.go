// Package rope holds the impls of rotary position embedding, forward and backward, of heads and of
// fused projections.
package rope
