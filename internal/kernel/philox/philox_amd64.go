//go:build amd64 && !noasm

package philox

import (
	"math/bits"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// keySchedule holds the two halves of the key of each of the ten rounds.
type keySchedule [20]uint32

func newKeySchedule(seed uint64) *keySchedule {
	k := new(keySchedule)
	k0, k1 := uint32(seed), uint32(seed>>32)
	for i := 0; i < len(k); i += 2 {
		k[i], k[i+1] = k0, k1
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return k
}

func atLeast(dst []uint32, seed, counter uint64, threshold uint32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		atLeastAVX512(&dst[0], len(dst), newKeySchedule(seed), counter, threshold)
	case cpufeat.Has(cpufeat.AVX2):
		atLeastAVX2(&dst[0], len(dst), newKeySchedule(seed), counter, threshold)
	default:
		atLeastGeneric(dst, seed, counter, threshold)
	}
}

// numbersVector does whole groups of wordBits numbers. It returns how many numbers it has done.
func numbersVector(dst []uint32, seed, counter uint64, stream uint32) (done int) {
	groups := len(dst) / wordBits
	if groups == 0 || !cpufeat.Has(cpufeat.AVX2) {
		return 0
	}
	keys := newKeySchedule(seed)
	// The product of the stream, the only word that is the same in all counters, becomes part of the
	// keys to which the first two rounds would add it.
	high, low := bits.Mul32(0xCD9E8D57, stream)
	keys[0] ^= high
	keys[2] ^= low
	if cpufeat.Has(cpufeat.AVX512) {
		numbersAVX512(&dst[0], groups, keys, counter)
	} else {
		numbersAVX2(&dst[0], groups, keys, counter)
	}
	return groups * wordBits
}

func keep(dst, x []float32, bits []uint32, first int) {
	bits, first = bits[first/wordBits:], first%wordBits
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		selectAVX512(&dst[0], &x[0], len(x), &bits[0], first)
	case cpufeat.Has(cpufeat.AVX2):
		whole := len(x) &^ 7
		if whole > 0 {
			selectAVX2(&dst[0], &x[0], whole, &bits[0], first)
		}
		selectGeneric(dst[whole:], x[whole:], bits, first+whole)
	default:
		selectGeneric(dst, x, bits, first)
	}
}

//go:noescape
func atLeastAVX512(dst *uint32, words int, keys *keySchedule, counter uint64, threshold uint32)

//go:noescape
func atLeastAVX2(dst *uint32, words int, keys *keySchedule, counter uint64, threshold uint32)

//go:noescape
func numbersAVX512(dst *uint32, words int, keys *keySchedule, counter uint64)

//go:noescape
func numbersAVX2(dst *uint32, words int, keys *keySchedule, counter uint64)

// selectAVX512 takes at least one element.
//
//go:noescape
func selectAVX512(dst, x *float32, n int, bits *uint32, first int)

// selectAVX2 takes a multiple of eight elements.
//
//go:noescape
func selectAVX2(dst, x *float32, n int, bits *uint32, first int)
