package data

import "math/bits"

// permutation is a bijection of 0 … n−1 that depends on a key and is computed
// in constant expected time and memory:
//
//	a balanced Feistel network on the smallest even number of bits that holds n,
//	applied again while its result is not below n (cycle walking)
//
// At most 4n values lie in the network's domain, so a value takes 4 passes at
// most on average. It is meant for shuffling, not for secrecy.
//
// Source: Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains".
type permutation struct {
	n    uint64
	half int
	mask uint64
	keys [feistelRounds]uint64
}

const feistelRounds = 6

func newPermutation(n, seed, epoch uint64) permutation {
	half := max((bits.Len64(n-1)+1)/2, 1)
	p := permutation{n: n, half: half, mask: 1<<half - 1}
	state := mix(seed) ^ mix(epoch+0x632be59bd9b4e019)
	for i := range p.keys {
		state += 0x9e3779b97f4a7c15
		p.keys[i] = mix(state)
	}
	return p
}

func (p *permutation) at(i uint64) uint64 {
	for {
		left, right := i>>p.half, i&p.mask
		for _, k := range p.keys {
			left, right = right, left^mix(right+k)&p.mask
		}
		i = left<<p.half | right
		if i < p.n {
			return i
		}
	}
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014): a bijection of
// 64 bits in which every input bit changes every output bit with chance one half.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
