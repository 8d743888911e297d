package optim

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// AdamConfig are the parameters of AdamW, with Megatron's names.
type AdamConfig struct {
	Beta1       float64 `param:"adam_beta1"`
	Beta2       float64 `param:"adam_beta2"`
	Eps         float64 `param:"adam_eps"`
	WeightDecay float64 `param:"weight_decay"`
	ClipGrad    float64 `param:"clip_grad"` // largest global norm; 0 means no clipping
}

// Validate returns every fault of the configuration.
func (c AdamConfig) Validate() error {
	var faults []error
	check := func(ok bool, key string, got float64, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: got %v, want %s", key, got, want))
		}
	}
	check(c.Beta1 >= 0 && c.Beta1 < 1, "adam_beta1", c.Beta1, "0 <= adam_beta1 < 1")
	check(c.Beta2 >= 0 && c.Beta2 < 1, "adam_beta2", c.Beta2, "0 <= adam_beta2 < 1")
	check(c.Eps > 0, "adam_eps", c.Eps, "a number > 0")
	check(c.WeightDecay >= 0, "weight_decay", c.WeightDecay, "a number >= 0")
	check(c.ClipGrad >= 0, "clip_grad", c.ClipGrad, "a number >= 0")
	return errors.Join(faults...)
}

// Param is a weight and its gradient.
type Param struct {
	Value, Grad *tensor.Tensor
	Decay       bool    // whether weight decay applies
	LRScale     float64 // factor of its learning rate; 0 means 1
}

// Adam keeps the moments of a set of weights.
type Adam struct {
	cfg    AdamConfig
	norm   *opmanager.Bound[optim.MultiTensorL2NormArgs]
	scale  *opmanager.Bound[optim.MultiTensorScaleArgs]
	adam   *opmanager.Bound[optim.MultiTensorAdamArgs]
	grads  []*tensor.Tensor
	M, V   []*tensor.Tensor // moments, in the order of the weights
	groups []*group         // the weights with the same decay and factor
	flag   *tensor.Tensor
	total  *tensor.Tensor
	owned  []*tensor.Tensor
}

type group struct {
	lists [][]*tensor.Tensor // g, p, m, v
	decay float32
	scale float64
}

// NewAdam returns an optimizer with zero moments in memory of the backend. Close
// returns the memory.
func NewAdam(cfg AdamConfig, params []Param, m *opmanager.Manager, backend device.Backend) (*Adam, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &Adam{
		cfg:   cfg,
		norm:  opmanager.MustBind(m, optim.MultiTensorL2Norm),
		scale: opmanager.MustBind(m, optim.MultiTensorScale),
		adam:  opmanager.MustBind(m, optim.MultiTensorAdam),
	}
	alloc := func(d tensor.DType, shape ...int) (*tensor.Tensor, error) {
		t, err := tensor.New(backend, d, shape...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("allocate optimizer state: %w", err), a.Close())
		}
		a.owned = append(a.owned, t)
		return t, nil
	}
	var err error
	if a.flag, err = alloc(tensor.I32, 1); err != nil {
		return nil, err
	}
	if a.total, err = alloc(tensor.F32, 1); err != nil {
		return nil, err
	}
	for _, p := range params {
		m, err := alloc(tensor.F32, p.Value.Shape()...)
		if err != nil {
			return nil, err
		}
		v, err := alloc(tensor.F32, p.Value.Shape()...)
		if err != nil {
			return nil, err
		}
		a.grads = append(a.grads, p.Grad)
		a.M, a.V = append(a.M, m), append(a.V, v)
		g := a.group(p)
		for i, t := range []*tensor.Tensor{p.Grad, p.Value, m, v} {
			g.lists[i] = append(g.lists[i], t)
		}
	}
	return a, nil
}

// group returns the group that a weight belongs to.
func (a *Adam) group(p Param) *group {
	scale, decay := cmp.Or(p.LRScale, 1), float32(0)
	if p.Decay {
		decay = float32(a.cfg.WeightDecay)
	}
	for _, g := range a.groups {
		if g.decay == decay && g.scale == scale {
			return g
		}
	}
	g := &group{lists: make([][]*tensor.Tensor, 4), decay: decay, scale: scale}
	a.groups = append(a.groups, g)
	return g
}

// Norm returns the Euclidean norm of all gradients.
func (a *Adam) Norm() (float64, error) {
	tensor.Data[int32](a.flag)[0] = 0
	lists := [][]*tensor.Tensor{a.grads}
	if err := a.norm.Call(optim.MultiTensorL2NormArgs{NoopFlag: a.flag, TensorLists: lists, Norm: a.total}); err != nil {
		return 0, fmt.Errorf("gradient norm: %w", err)
	}
	return float64(tensor.Data[float32](a.total)[0]), nil
}

// Clip returns the Euclidean norm of all gradients and, if it exceeds clip_grad, scales them down
// to that norm. It does not change them if the norm is not finite.
func (a *Adam) Clip() (norm float64, err error) {
	if norm, err = a.Norm(); err != nil {
		return 0, err
	}
	if a.cfg.ClipGrad == 0 || !(norm > a.cfg.ClipGrad) || math.IsInf(norm, 0) {
		return norm, nil
	}
	args := optim.MultiTensorScaleArgs{
		NoopFlag: a.flag, TensorLists: [][]*tensor.Tensor{a.grads, a.grads},
		Scale: float32(a.cfg.ClipGrad / (norm + 1e-6)),
	}
	if err := a.scale.Call(args); err != nil {
		return 0, fmt.Errorf("clip gradients: %w", err)
	}
	return norm, nil
}

// Step updates all weights with the gradients, as step number step from 1. The
// learning rate of a weight is lr times its factor.
func (a *Adam) Step(step int, lr float64) error {
	for _, g := range a.groups {
		args := optim.MultiTensorAdamArgs{
			NoopFlag: a.flag, TensorLists: g.lists, LR: float32(lr * g.scale),
			Beta1: float32(a.cfg.Beta1), Beta2: float32(a.cfg.Beta2), Epsilon: float32(a.cfg.Eps),
			Step: step, Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: g.decay,
		}
		if err := a.adam.Call(args); err != nil {
			return fmt.Errorf("optimizer step: %w", err)
		}
	}
	return nil
}

// Close returns the memory of the optimizer's state.
func (a *Adam) Close() error {
	var faults []error
	for _, t := range a.owned {
		faults = append(faults, t.Release())
	}
	a.owned = nil
	return errors.Join(faults...)
}
