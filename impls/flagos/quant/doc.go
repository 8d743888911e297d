// Package quant holds the impls that round tensors to fp8 and back. They serve every scaling but
// that of nvfp4.
package quant
