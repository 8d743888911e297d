package architecture

import (
	"cmp"
	"math"
)

// Yarn are the parameters of rotary positions of type yarn, with Megatron's names: low frequencies
// are divided, high ones are kept, and scores of attention are multiplied. Source: YaRN,
// arXiv:2309.00071, as transformers computes it.
type Yarn struct {
	Factor       float64 `param:"yarn_rotary_scaling_factor"`
	Context      int     `param:"yarn_original_max_position_embeddings"`
	BetaFast     float64 `param:"yarn_beta_fast"` // turns in the original context above which a frequency is kept; 0 means 32
	BetaSlow     float64 `param:"yarn_beta_slow"` // turns below which it is divided by the factor; 0 means 1
	MScale       float64 `param:"yarn_mscale"`    // 0 means 1
	MScaleAllDim float64 `param:"yarn_mscale_all_dim"`
}

// yarn reports whether positions are of type yarn.
func (c Config) yarn() bool { return c.PositionEmbedding == YaRN }

func (c Config) validateYarn(f *faults) {
	const largest = math.MaxFloat32
	y := c.Yarn.resolved()
	switch {
	case !c.yarn():
		for _, given := range []struct {
			name           string
			value, neutral float64
		}{
			{"yarn_rotary_scaling_factor", c.Factor, 0}, {"yarn_beta_fast", c.BetaFast, 32}, {"yarn_beta_slow", c.BetaSlow, 1},
			{"yarn_mscale", c.MScale, 1}, {"yarn_mscale_all_dim", c.MScaleAllDim, 0},
		} {
			if given.value != 0 && given.value != given.neutral {
				f.bad(given.name, given.value, "null without position_embedding_type yarn")
			}
		}
		return
	}
	if !(y.Factor >= 1 && y.Factor <= largest) {
		f.bad("yarn_rotary_scaling_factor", c.Factor, "a number >= 1 that f32 can hold")
	}
	if y.Context < 1 {
		f.bad("yarn_original_max_position_embeddings", c.Context, "a number >= 1")
	}
	if !(y.BetaSlow > 0) {
		f.bad("yarn_beta_slow", c.BetaSlow, "a number > 0")
	}
	if !(y.BetaFast > y.BetaSlow && y.BetaFast <= largest) {
		f.bad("yarn_beta_fast", c.BetaFast, "a number > yarn_beta_slow that f32 can hold")
	}
	if !(y.MScale > 0 && y.MScale <= largest) {
		f.bad("yarn_mscale", c.MScale, "a number > 0 that f32 can hold")
	}
	if !(y.MScaleAllDim >= 0 && y.MScaleAllDim <= largest) {
		f.bad("yarn_mscale_all_dim", c.MScaleAllDim, "a number >= 0 that f32 can hold")
	}
}

// resolved returns the parameters with the values that zeros stand for.
func (y Yarn) resolved() Yarn {
	if y.Factor != 0 {
		y.BetaFast, y.BetaSlow, y.MScale = cmp.Or(y.BetaFast, 32), cmp.Or(y.BetaSlow, 1), cmp.Or(y.MScale, 1)
	}
	return y
}

// yarnFrequency returns f, the frequency of pair i of a head, divided by the factor from the pair
// on that turns BetaSlow times, kept up to that which turns BetaFast times, and between the two in
// proportion else.
func (c Config) yarnFrequency(f float64, i int) float64 {
	y, d := c.Yarn.resolved(), float64(c.HeadDim())
	pair := func(turns float64) float64 {
		return d * math.Log(float64(y.Context)/(turns*2*math.Pi)) / (2 * math.Log(c.RotaryBase))
	}
	low, high := max(math.Floor(pair(y.BetaFast)), 0), min(math.Ceil(pair(y.BetaSlow)), d-1)
	if low == high {
		high += 0.001
	}
	divided := min(max((float64(i)-low)/(high-low), 0), 1)
	return (1-divided)*f + divided*f/y.Factor
}

// AttentionScale returns what scores of attention are multiplied with, and whether it is not the
// 1/√d of a head of d elements.
func (c Config) AttentionScale() (scale float64, special bool) {
	m, d := 1.0, cmp.Or(c.QueryScalar, float64(c.HeadDim()))
	switch c.PositionEmbedding {
	case YaRN:
		m = c.Yarn.attentionFactor()
	case LongRope:
		m = c.longRopeAttentionFactor()
	case "", Rope, DynamicRope, LearnedAbsolute:
		return 1 / math.Sqrt(d), c.QueryScalar != 0
	}
	return m * m / math.Sqrt(d), true
}

// attentionFactor returns what queries and keys are multiplied with.
func (y Yarn) attentionFactor() float64 {
	y = y.resolved()
	of := func(m float64) float64 { return 0.1*m*math.Log(y.Factor) + 1 }
	return of(y.MScale) / of(y.MScaleAllDim)
}

// hf returns the content of rope_scaling in config.json.
func (y Yarn) hf() map[string]any {
	y = y.resolved()
	all := map[string]any{
		"rope_type": "yarn", "factor": y.Factor, "original_max_position_embeddings": y.Context, "beta_fast": y.BetaFast, "beta_slow": y.BetaSlow,
	}
	if y.MScaleAllDim != 0 {
		all["mscale"], all["mscale_all_dim"] = y.MScale, y.MScaleAllDim
	}
	return all
}
