package random

import "math/bits"

// The multipliers of the rounds of Philox4x32 and the steps of its key.
const (
	philoxM0, philoxM1 = 0xD2511F53, 0xCD9E8D57
	philoxW0, philoxW1 = 0x9E3779B9, 0xBB67AE85
)

// Philox4x32 returns the four words that Philox4x32 with ten rounds computes from a counter and a
// key. Every random op takes its bits from it, so that impls agree bit for bit. Source: Salmon et
// al. 2011, "Parallel random numbers: as easy as 1, 2, 3", doi:10.1145/2063384.2063405.
func Philox4x32(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(philoxM0, counter[0])
		hi1, lo1 := bits.Mul32(philoxM1, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += philoxW0
		key[1] += philoxW1
	}
	return counter
}

// Bits returns the 32 bits of element n of a random op: word n mod 4 of Philox4x32 with the
// key seed and the counter offset + ⌊n/4⌋ mod 2⁶⁴, where low words come first and the upper half of
// the counter is 0.
func Bits(seed, offset, n uint64) uint32 {
	block := offset + n/4
	words := Philox4x32([4]uint32{uint32(block), uint32(block >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	return words[n%4]
}
