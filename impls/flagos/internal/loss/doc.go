// Package loss holds the impls of cross entropy, forward and backward.
package loss
