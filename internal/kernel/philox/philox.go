package philox

import (
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/internal/random"
)

// wordBits is the number of decisions in an element of bits.
const wordBits = 32

// AtLeast fills dst with decisions, bit i mod 32 of dst[⌊i/32⌋] being
//
//	random.Bits(seed, counter, i) >= threshold
func AtLeast(dst []uint32, seed, counter uint64, threshold uint32) {
	race.Write(dst)
	if len(dst) > 0 {
		atLeast(dst, seed, counter, threshold)
	}
}

// Numbers fills dst with random numbers, dst[i] being word i mod 4 of
//
//	random.Philox4x32({counter + ⌊i/4⌋, stream, 0}, seed)
//
// of which the first argument has the low word of the counter first, and the counter wraps around.
func Numbers(dst []uint32, seed, counter uint64, stream uint32) {
	race.Write(dst)
	done := numbersVector(dst, seed, counter, stream)
	key := [2]uint32{uint32(seed), uint32(seed >> 32)}
	for i := done; i < len(dst); i += 4 {
		c := counter + uint64(i/4)
		words := random.Philox4x32([4]uint32{uint32(c), uint32(c >> 32), stream}, key)
		copy(dst[i:], words[:])
	}
}

// Words returns how many elements of bits Select needs for n elements from bit first on.
func Words(first, n int) int { return (first + n + slack + wordBits - 1) / wordBits }

// slack is how many bits after the last one Select may read.
const slack = 32

// Select stores the kept elements of x:
//
//	dst[i] = x[i] where bit first+i is set, 0 elsewhere
//
// for every element of x. The other elements are not read: a NaN there disappears. dst may be x.
// bits has at least Words(first, len(x)) elements.
func Select(dst, x []float32, bits []uint32, first int) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Read(bits[first/wordBits : Words(first, len(x))])
	race.Write(dst)
	if len(x) > 0 {
		keep(dst, x, bits, first)
	}
}

func atLeastGeneric(dst []uint32, seed, counter uint64, threshold uint32) {
	key := [2]uint32{uint32(seed), uint32(seed >> 32)}
	for i := range dst {
		word := uint32(0)
		for at := 0; at < wordBits; at += 4 {
			for k, w := range random.Philox4x32([4]uint32{uint32(counter), uint32(counter >> 32)}, key) {
				if w >= threshold {
					word |= 1 << (at + k)
				}
			}
			counter++
		}
		dst[i] = word
	}
}

func selectGeneric(dst, x []float32, bits []uint32, first int) {
	for i, v := range x {
		if at := first + i; bits[at/wordBits]>>(at%wordBits)&1 == 0 {
			v = 0
		}
		dst[i] = v
	}
}
