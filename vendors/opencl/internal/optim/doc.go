// Package optim holds the impls of optimizer steps, norms and products over lists of tensors. Each
// tensor is one launch.
package optim
