//go:build !amd64 || noasm

package simd

func logSumExp(dst []float64, x []float32, cols, pitch int) { logSumExpGeneric(dst, x, cols, pitch) }
