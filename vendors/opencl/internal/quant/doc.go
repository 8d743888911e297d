// Package quant holds the impls of rounding to fp8 and back, with one scale, one for each block, or
// the scales of MXFP8, and of the scales of delayed scaling.
package quant
