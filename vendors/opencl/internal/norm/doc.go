// Package norm holds the impls of RMSNorm and LayerNorm, of their gradients and of the sum of two
// residual streams.
package norm
