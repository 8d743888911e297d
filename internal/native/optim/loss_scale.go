package optim

import (
	"errors"
	"fmt"
)

// LossScaleConfig are the parameters of the factor of losses in fp16, whose gradients would
// otherwise be too small for the type, with Megatron's names.
type LossScaleConfig struct {
	LossScale  float64 `param:"loss_scale"` // a factor that stays; 0 means that it is found
	Initial    float64 `param:"initial_loss_scale"`
	Min        float64 `param:"min_loss_scale"`
	Window     int     `param:"loss_scale_window"` // the steps without overflow after which the factor doubles
	Hysteresis int     `param:"hysteresis"`        // the overflows after which it is halved
}

// DefaultLossScale returns the values of parameters that presets need not have.
func DefaultLossScale() LossScaleConfig {
	return LossScaleConfig{Initial: 1 << 32, Min: 1, Window: 1000, Hysteresis: 2}
}

// Validate returns every fault of the configuration.
func (c LossScaleConfig) Validate() error {
	f := faults{}
	f.check(c.LossScale >= 0, "loss_scale", c.LossScale, "a number > 0, or 0 to find one")
	f.check(c.Min > 0, "min_loss_scale", c.Min, "a number > 0")
	f.check(c.Initial >= c.Min, "initial_loss_scale", c.Initial, fmt.Sprintf("at least min_loss_scale %v", c.Min))
	f.check(c.Window >= 1, "loss_scale_window", c.Window, "a number >= 1")
	f.check(c.Hysteresis >= 1, "hysteresis", c.Hysteresis, "a number >= 1")
	return errors.Join(f...)
}

// LossScale is the factor of losses. Its exported fields are what a checkpoint holds.
type LossScale struct {
	Scale   float64 `json:"scale"`
	Good    int     `json:"good"`    // steps since the last overflow or doubling
	Left    int     `json:"left"`    // overflows until the factor is halved
	Skipped int     `json:"skipped"` // steps that overflowed

	cfg LossScaleConfig
}

// NewLossScale returns the factor before the first step.
func NewLossScale(cfg LossScaleConfig) *LossScale {
	l := &LossScale{Scale: cfg.Initial, Left: cfg.Hysteresis, cfg: cfg}
	if cfg.LossScale > 0 {
		l.Scale = cfg.LossScale
	}
	return l
}

// Restore continues with the fields of another factor.
func (l *LossScale) Restore(saved LossScale) {
	cfg := l.cfg
	*l = saved
	l.cfg = cfg
}

// Exhausted reports whether the factor cannot become smaller.
func (l *LossScale) Exhausted() bool { return l.cfg.LossScale == 0 && l.Scale <= l.cfg.Min }

// Update takes whether the gradients of a step were finite. Steps whose gradients were not are to
// be skipped.
//
// The factor doubles after loss_scale_window finite steps in a row. It is halved at the overflow
// number hysteresis, and at each further one until it has doubled again. Source: Micikevicius et
// al. 2018, arXiv:1710.03740; Megatron-LM for hysteresis.
func (l *LossScale) Update(finite bool) {
	switch {
	case !finite:
		l.Skipped++
		l.Good = 0
		if l.Left--; l.Left <= 0 && l.cfg.LossScale == 0 {
			l.Scale = max(l.Scale/2, l.cfg.Min)
		}
	case l.cfg.LossScale == 0:
		if l.Good++; l.Good == l.cfg.Window {
			l.Good, l.Left = 0, l.cfg.Hysteresis
			l.Scale *= 2
		}
	}
}
