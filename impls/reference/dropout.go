package reference

import (
	"github.com/primus-fl/primus/internal/random"
	"github.com/primus-fl/primus/ops/dropout"
)

// dropoutFwd implements dropout.DropoutFwd.
func dropoutFwd(a dropout.DropoutFwdArgs) error {
	x := a.Input.Float64s()
	mask := make([]float64, a.Mask.NumElements())
	threshold := uint32(float64(a.DropoutProbability) * (1 << 32))
	for i := range x {
		if random.Bits(a.Seed, a.Offset, uint64(i)) >= threshold {
			mask[i/8] += float64(int(1) << (i % 8))
		}
	}
	if err := a.Out.SetFloat64s(kept(x, mask, a.DropoutProbability)); err != nil {
		return err
	}
	return a.Mask.SetFloat64s(mask)
}

// dropoutBwd implements dropout.DropoutBwd.
func dropoutBwd(a dropout.DropoutBwdArgs) error {
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
