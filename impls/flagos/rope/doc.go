// Package rope holds the impls of rotary position embedding, forward and backward.
package rope
