//go:build !amd64 || noasm

package simd

func spreadPanels([]float32, int, int, []float32, int, int, int) int { return 0 }
