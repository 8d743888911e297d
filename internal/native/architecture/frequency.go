package architecture

import "math"

// Frequency returns the angle in radians by which pair i of a head of d elements turns per
// position:
//
//	f = rotary_base^(−2i/d) / rotary_seq_len_interpolation_factor
//
// With use_rope_scaling, a frequency that turns t = original·f/2π times within the original context
// is divided by rope_scaling_factor if t is below the low factor, is kept if t is above the high
// factor, and is between the two in proportion else. Source: Llama 3.1, arXiv:2407.21783, and its
// published configuration. With position_embedding_type yarn, frequencies are those of Yarn; with
// dynamic and longrope they depend on the length of sequences.
func (c Config) Frequency(i, length int) float64 {
	s := c.RopeScaling.resolved()
	f := math.Pow(c.baseFor(length), -2*float64(i)/float64(c.HeadDim())) / s.Interpolation
	switch {
	case c.yarn():
		return c.yarnFrequency(f, i)
	case c.PositionEmbedding == LongRope:
		return f / c.factorsFor(length)[i]
	case !s.UseScaling:
		return f
	}
	turns := float64(s.OldContext) * f / (2 * math.Pi)
	kept := min(max((turns-s.LowFreq)/(s.HighFreq-s.LowFreq), 0), 1)
	return kept*f + (1-kept)*f/s.ScalingFactor
}
