package reference

import (
	"math/bits"

	"github.com/primus-fl/primus/opregistry/ops"
)

// dropoutFwd follows ops.DropoutFwd.
func dropoutFwd(a ops.DropoutFwdArgs) error {
	x := a.Input.Float64s()
	mask := make([]float64, a.Mask.NumElements())
	threshold := uint32(float64(a.DropoutProbability) * (1 << 32))
	for i := range x {
		if randomWord(a.Seed, a.Offset, i) >= threshold {
			mask[i/8] += float64(int(1) << (i % 8))
		}
	}
	if err := a.Out.SetFloat64s(kept(x, mask, a.DropoutProbability)); err != nil {
		return err
	}
	return a.Mask.SetFloat64s(mask)
}

// dropoutBwd follows ops.DropoutBwd.
func dropoutBwd(a ops.DropoutBwdArgs) error {
	return a.GradInput.SetFloat64s(kept(a.GradOutput.Float64s(), a.Mask.Float64s(), a.DropoutProbability))
}

// kept returns x/(1−p) where the bit of mask is set and 0 elsewhere.
func kept(x, mask []float64, p float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		if int(mask[i/8])>>(i%8)&1 == 1 {
			y[i] = v / (1 - float64(p))
		}
	}
	return y
}

// randomWord returns the word of element i.
func randomWord(seed, offset uint64, i int) uint32 {
	c := offset + uint64(i/4)
	return philox([4]uint32{uint32(c), uint32(c >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})[i%4]
}

// philox is Philox4x32-10: ten rounds of two products whose upper halves are mixed
// with the key and the other words.
func philox(x [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(0xD2511F53, x[0])
		hi1, lo1 := bits.Mul32(0xCD9E8D57, x[2])
		x = [4]uint32{hi1 ^ x[1] ^ key[0], lo1, hi0 ^ x[3] ^ key[1], lo0}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return x
}
