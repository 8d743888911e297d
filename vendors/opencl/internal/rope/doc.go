// Package rope holds the impls of the rotary position embedding and of its gradient.
package rope
