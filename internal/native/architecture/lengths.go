package architecture

import (
	"fmt"
	"math"
)

// LongRopeFactors are the parameters of rotary positions of type longrope, with the names of
// transformers: each pair of a head has numbers that divide its frequency, one for sequences within
// rope_scaling_original_max_position_embeddings and one for longer ones. Source: LongRoPE,
// arXiv:2402.13753, as transformers computes it.
type LongRopeFactors struct {
	ShortFactors []float64 `param:"rope_scaling_short_factor"`
	LongFactors  []float64 `param:"rope_scaling_long_factor"`

	// Attention is what queries and keys are multiplied with; 0 means √(1 + ln s / ln n) for s times
	// the n original positions.
	AttentionFactor float64 `param:"rope_scaling_attention_factor"`
}

// Local returns the configuration of the positions of layers with the window.
func (c Config) Local() Config {
	c.RotaryBase, c.PositionEmbedding, c.RopeScaling = c.LocalBase, Rope, RopeScaling{}
	return c
}

// validateLengths checks what positions need whose frequencies depend on the length of sequences.
func (c Config) validateLengths(f *faults) {
	if c.PositionEmbedding != "" && c.PositionEmbedding != Rope && (c.UseScaling || c.interpolated()) && c.Rotary() {
		f.bad("position_embedding_type", c.PositionEmbedding, "rope with use_rope_scaling or rotary_seq_len_interpolation_factor")
	}
	if c.PositionEmbedding == DynamicRope && c.HeadDim() <= 2 {
		f.bad("kv_channels", c.HeadDim(), "more than 2 with position_embedding_type dynamic")
	}
	if !(c.AttentionFactor >= 0 && c.AttentionFactor <= math.MaxFloat32) {
		f.bad("rope_scaling_attention_factor", c.AttentionFactor, "a number >= 0 that f32 can hold")
	}
	for _, given := range []struct {
		name   string
		values []float64
	}{{"rope_scaling_short_factor", c.ShortFactors}, {"rope_scaling_long_factor", c.LongFactors}} {
		switch {
		case c.PositionEmbedding != LongRope:
			if len(given.values) > 0 {
				f.bad(given.name, fmt.Sprintf("%d numbers", len(given.values)), "null without position_embedding_type longrope")
			}
		case len(given.values) != c.HeadDim()/2:
			f.bad(given.name, fmt.Sprintf("%d numbers", len(given.values)), fmt.Sprintf("%d, one for each pair of a head of %d", c.HeadDim()/2, c.HeadDim()))
		default:
			for _, v := range given.values {
				if !(v >= 1e-6 && v <= 1e6) {
					f.bad(given.name, v, "numbers from 1e-6 to 1e6")
					break
				}
			}
		}
	}
}

// baseFor returns rotary_base for sequences of a length: with dynamic positions, more for those
// longer than the positions of the model. Source: transformers, where it is known as NTK scaling.
func (c Config) baseFor(length int) float64 {
	if c.PositionEmbedding != DynamicRope || length <= c.Positions() {
		return c.RotaryBase
	}
	s, d := c.RopeScaling.resolved().ScalingFactor, float64(c.HeadDim())
	return c.RotaryBase * math.Pow(s*float64(length)/float64(c.Positions())-(s-1), d/(d-2))
}

// factorsFor returns the numbers that divide the frequencies of longrope.
func (c Config) factorsFor(length int) []float64 {
	if length > c.RopeScaling.resolved().OldContext {
		return c.LongFactors
	}
	return c.ShortFactors
}

func (c Config) longRopeAttentionFactor() float64 {
	old := float64(c.RopeScaling.resolved().OldContext)
	if c.AttentionFactor != 0 {
		return c.AttentionFactor
	}
	return LongRopeAttention(float64(c.Positions())/old, old)
}

// LongRopeAttention returns what queries and keys are multiplied with for a factor of so many
// positions.
func LongRopeAttention(factor, positions float64) float64 {
	if factor <= 1 || positions <= 1 {
		return 1
	}
	return math.Sqrt(1 + math.Log(factor)/math.Log(positions))
}

// longRopeHF returns the content of rope_scaling in config.json.
func (c Config) longRopeHF() map[string]any {
	return map[string]any{
		"rope_type": "longrope", "short_factor": c.ShortFactors, "long_factor": c.LongFactors, "attention_factor": c.longRopeAttentionFactor(),
		"original_max_position_embeddings": c.RopeScaling.resolved().OldContext,
	}
}
