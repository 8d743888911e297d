// Package quant has quantised tensors and the ops that make, read, transpose and scale them: fp8
// with scales of a tensor or a block, mxfp8 and nvfp4.
//
// Package ops says what holds for every op of the catalogue.
package quant
