// Package quant holds the impls that round tensors to fp8 and back, with every scaling but that of
// nvfp4, and those of the casts, scales and layouts of parts of tensors, also for nvfp4.
package quant
