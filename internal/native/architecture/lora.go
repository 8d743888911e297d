package architecture

import (
	"math"
	"slices"
)

// LoRA are the parameters of low-rank adapters: a projection y = x·Wᵀ becomes
//
//	y = x·Wᵀ + alpha/rank · dropout(x)·Aᵀ·Bᵀ
//
// with A [rank in] and B [out rank]. Only A and B are trained. Source: Hu et al., LoRA (2021); the
// names and the initial values are those of PEFT.
type LoRA struct {
	Rank    int      `param:"lora_rank"`           // 0 means that there are no adapters and all weights are trained
	Alpha   float64  `param:"lora_alpha"`          // 0 means lora_rank
	Dropout float64  `param:"lora_dropout"`        // the probability that an element of x is dropped in training
	Targets []string `param:"lora_target_modules"` // the projections by the last part of their names; nil means all
}

// Adapts reports whether adapters are trained in place of the weights.
func (l LoRA) Adapts() bool { return l.Rank > 0 }

// Scale returns the factor of what adapters add.
func (l LoRA) Scale() float64 {
	if l.Alpha == 0 {
		return 1
	}
	return l.Alpha / float64(l.Rank)
}

func (c Config) validateLoRA(f *faults) {
	if c.Rank < 0 {
		f.bad("lora_rank", c.Rank, "a number >= 0")
	}
	if !(c.LoRA.Alpha >= 0) || math.IsInf(c.LoRA.Alpha, 0) {
		f.bad("lora_alpha", c.LoRA.Alpha, "a number >= 0")
	}
	if !(c.LoRA.Dropout >= 0 && c.LoRA.Dropout < 1) {
		f.bad("lora_dropout", c.LoRA.Dropout, "0 <= lora_dropout < 1")
	}
	if !c.Adapts() {
		return
	}
	if c.Mixture() {
		f.bad("lora_rank", c.Rank, "0 with num_experts: experts have no adapters")
	}
	for _, t := range c.Targets {
		f.oneOf("lora_target_modules", t, c.AdapterTargets())
	}
}

// AdapterTargets returns the names of the projections that can have adapters.
func (c Config) AdapterTargets() []string {
	if c.family() == familyGPT2 {
		return []string{gpt2Names.QKV, gpt2Names.Up, gpt2Names.Down}
	}
	n := llamaNames
	all := []string{n.Q, n.K, n.V, n.Out}
	if c.Gated() {
		all = append(all, n.Gate)
	}
	return append(all, n.Up, n.Down)
}

// TrainedParameters returns the number of weights that are trained, exact up to 2⁵³: those of the
// adapters if there are any, else all.
func (c Config) TrainedParameters() float64 {
	if !c.Adapts() {
		return c.parameters()
	}
	type size struct {
		name string
		sum  int // of rows and columns
	}
	h, q, kv, f := c.HiddenSize, c.HeadDim()*c.NumAttentionHeads, c.HeadDim()*c.Groups(), c.FFNHiddenSize
	n := llamaNames
	sizes := []size{{n.Q, q + h}, {n.K, kv + h}, {n.V, kv + h}, {n.Out, h + q}, {n.Up, f + h}, {n.Down, h + f}}
	switch {
	case c.family() == familyGPT2:
		n = gpt2Names
		sizes = []size{{n.QKV, c.QKVRows() + h}, {n.Out, h + q}, {n.Up, f + h}, {n.Down, h + f}}
	case c.Gated():
		sizes = append(sizes, size{n.Gate, f + h})
	}
	total := 0.0
	for _, s := range sizes {
		if c.Targets == nil || slices.Contains(c.Targets, s.name) {
			total += float64(s.sum)
		}
	}
	return total * float64(c.Rank) * float64(c.NumLayers)
}
