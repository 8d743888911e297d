// Package panel reads the operands of matrix products, transposed or not, and packs them to the
// panels that the kernels of matrix products read.
package panel
