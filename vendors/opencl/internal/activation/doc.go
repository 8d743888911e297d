// Package activation holds the impls of activation functions, gated or not, and of their gradients.
package activation
