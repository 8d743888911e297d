package optim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Kind is the kind of an optimizer, with Megatron's names.
type Kind string

// The kinds.
const (
	Adam Kind = "adam"
	SGD  Kind = "sgd"
	Muon Kind = "muon" // of the matrices of layers; other weights have Adam
)

// Values returns the kinds.
func (Kind) Values() []string { return []string{string(Adam), string(SGD), string(Muon)} }

// OptimizerConfig are the parameters of the optimizer, with Megatron's names.
type OptimizerConfig struct {
	Optimizer   Kind    `param:"optimizer"` // "" means adam
	Beta1       float64 `param:"adam_beta1"`
	Beta2       float64 `param:"adam_beta2"`
	Eps         float64 `param:"adam_eps"`
	SGDMomentum float64 `param:"sgd_momentum"`
	WeightDecay float64 `param:"weight_decay"`
	ClipGrad    float64 `param:"clip_grad"` // largest global norm; 0 means no clipping

	// Decoupled adds the weight decay of Adam to the update, as in AdamW, instead of to the
	// gradient.
	Decoupled bool `param:"decoupled_weight_decay"`

	DecayStyle Style   `param:"weight_decay_incr_style"` // "" means constant
	StartDecay float64 `param:"start_weight_decay"`      // with another style than constant
	EndDecay   float64 `param:"end_weight_decay"`        // with another style than constant

	EMADecay float64 `param:"ema_decay"` // of the average of the weights; 0 means none

	MuonConfig
}

// DefaultConfig returns the values of parameters that presets need not have.
func DefaultConfig() OptimizerConfig {
	return OptimizerConfig{
		SGDMomentum: 0.9, Decoupled: true,
		MuonConfig: MuonConfig{Momentum: 0.9, Steps: 5, Scale: Spectral, ExtraScale: 1, SplitQKV: true},
	}
}

// Validate returns every fault of the configuration.
func (c OptimizerConfig) Validate() error {
	f := faults{}
	f.oneOf("optimizer", string(c.Optimizer), c.Optimizer.Values())
	f.check(c.Beta1 >= 0 && c.Beta1 < 1, "adam_beta1", c.Beta1, "0 <= adam_beta1 < 1")
	f.check(c.Beta2 >= 0 && c.Beta2 < 1, "adam_beta2", c.Beta2, "0 <= adam_beta2 < 1")
	f.check(c.Eps > 0, "adam_eps", c.Eps, "a number > 0")
	f.check(c.SGDMomentum >= 0 && c.SGDMomentum < 1, "sgd_momentum", c.SGDMomentum, "0 <= sgd_momentum < 1")
	f.check(c.WeightDecay >= 0, "weight_decay", c.WeightDecay, "a number >= 0")
	f.check(c.EMADecay >= 0 && c.EMADecay < 1, "ema_decay", c.EMADecay, "0 <= ema_decay < 1")
	f.check(c.ClipGrad >= 0, "clip_grad", c.ClipGrad, "a number >= 0")
	f.oneOf("weight_decay_incr_style", string(c.DecayStyle), []string{string(Constant), string(Linear), string(Cosine)})
	for key, v := range map[string]float64{"start_weight_decay": c.StartDecay, "end_weight_decay": c.EndDecay} {
		if cmp.Or(c.DecayStyle, Constant) == Constant {
			f.check(v == 0 || v == c.WeightDecay, key, v, fmt.Sprintf("weight_decay %v, or weight_decay_incr_style linear or cosine", c.WeightDecay))
		} else {
			f.check(v >= 0, key, v, "a number >= 0")
		}
	}
	c.MuonConfig.validate(&f)
	return errors.Join(f...)
}

// WeightDecayAt returns the weight decay of a step, counted from 1, of a run of so many steps. With
// the style linear or cosine it goes from start_weight_decay to end_weight_decay.
func (c OptimizerConfig) WeightDecayAt(step, steps int) float64 {
	x := min(float64(step)/float64(max(steps, 1)), 1)
	switch cmp.Or(c.DecayStyle, Constant) {
	case Constant:
		return c.WeightDecay
	case Cosine:
		x = (1 + math.Cos(math.Pi*(1-x))) / 2
	}
	return c.StartDecay + x*(c.EndDecay-c.StartDecay)
}

// faults collects the faults of a configuration.
type faults []error

func (f *faults) check(ok bool, key string, got any, want string) {
	if !ok {
		*f = append(*f, fmt.Errorf("%s: given %v, want %s", key, got, want))
	}
}

// oneOf adds a fault unless got is one of several values or empty.
func (f *faults) oneOf(key, got string, values []string) {
	f.check(got == "" || slices.Contains(values, got), key, fmt.Sprintf("%q", got), strings.Join(values, " or "))
}
