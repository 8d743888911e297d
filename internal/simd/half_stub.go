//go:build !amd64 || noasm

package simd

func widenBF16(dst []float32, src []uint16)  { widenBF16Generic(dst, src) }
func widenF16(dst []float32, src []uint16)   { widenF16Generic(dst, src) }
func narrowBF16(dst []uint16, src []float32) { narrowBF16Generic(dst, src) }
func narrowF16(dst []uint16, src []float32)  { narrowF16Generic(dst, src) }
