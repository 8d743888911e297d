package optim

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// adam is Adam or AdamW, which keeps two moments of each weight.
type adam struct {
	cfg    OptimizerConfig
	op     *opmanager.Bound[optim.MultiTensorAdamArgs]
	m, v   []*tensor.Tensor
	groups []*group // of the lists g, p, m, v
	flag   *tensor.Tensor
	memory
}

func newAdam(cfg OptimizerConfig, params []Param, m *opmanager.Manager, backend device.Backend) (*adam, error) {
	a := &adam{cfg: cfg, op: opmanager.MustBind(m, optim.MultiTensorAdam), memory: memory{backend: backend}}
	if err := a.allocate(params); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.groups = groups(params, 4, func(i int, p Param) []*tensor.Tensor { return []*tensor.Tensor{p.Grad, p.Value, a.m[i], a.v[i]} })
	return a, nil
}

func (a *adam) allocate(params []Param) (err error) {
	if a.flag, err = a.new(tensor.I32, 1); err != nil {
		return err
	}
	if a.m, err = a.like(params); err != nil {
		return err
	}
	a.v, err = a.like(params)
	return err
}

// Step implements Optimizer.
func (a *adam) Step(u Update) error {
	mode := optim.AdamL2
	if a.cfg.Decoupled {
		mode = optim.AdamDecay
	}
	for _, g := range a.groups {
		args := optim.MultiTensorAdamArgs{
			NoopFlag: a.flag, TensorLists: g.lists, LR: float32(u.LR * g.scale),
			Beta1: float32(a.cfg.Beta1), Beta2: float32(a.cfg.Beta2), Epsilon: float32(a.cfg.Eps),
			Step: u.Step, Mode: mode, BiasCorrection: true, WeightDecay: g.weightDecay(u),
		}
		if err := a.op.Call(args); err != nil {
			return fmt.Errorf("optimizer step: %w", err)
		}
	}
	return nil
}

// State implements Optimizer.
func (a *adam) State() []State { return []State{{"exp_avg", a.m}, {"exp_avg_sq", a.v}} }

var _ Optimizer = (*adam)(nil)
