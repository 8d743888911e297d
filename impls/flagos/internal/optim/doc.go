// Package optim holds the impls of optimizer steps over lists of tensors, and of the norms and
// scales of such lists.
package optim
