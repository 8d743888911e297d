package tensor

import "math/bits"

// Class returns a number other than 0 that is the same for tensors of one dtype whose axes are
// about as long and that are both contiguous or both not: a length above 16 counts by its first
// four binary digits. Choices that depend on sizes can be kept by it.
func (t *Tensor) Class() uint64 { return t.class }

func classOf(d DType, shape Shape, contiguous bool) uint64 {
	class := uint64(d)<<1 | 1
	if !contiguous {
		class |= 1 << 63
	}
	for _, n := range shape {
		class = bits.RotateLeft64(class, 9) + Rounded(n)
	}
	return class
}

// Rounded returns a number of at most 9 bits that is the same for lengths with the same number of
// binary digits and the same first four of them.
func Rounded(n int) uint64 {
	if n < 16 {
		return uint64(n)
	}
	digits := bits.Len(uint(n))
	return uint64(16 + (digits-5)<<3 | n>>(digits-4)&7)
}
