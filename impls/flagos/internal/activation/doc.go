// Package activation holds the impls of activation functions, of their gated forms and of their
// gradients, with and without the gradient of a bias.
package activation
