// Package quant holds the impls that round tensors to fp8 and fp4 and back, with every scaling, and
// those of the casts, scales and layouts of parts of tensors.
package quant
