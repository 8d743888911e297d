package optim

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// sgd is stochastic gradient descent with momentum. Weight decay is added to the gradient.
type sgd struct {
	cfg      OptimizerConfig
	op       *opmanager.Bound[optim.MultiTensorSGDArgs]
	momentum []*tensor.Tensor
	groups   []*group // of the lists g, p, momentum
	flag     *tensor.Tensor
	memory
}

func newSGD(cfg OptimizerConfig, params []Param, m *opmanager.Manager, backend device.Backend) (_ *sgd, err error) {
	s := &sgd{cfg: cfg, op: opmanager.MustBind(m, optim.MultiTensorSGD), memory: memory{backend: backend}}
	if s.flag, err = s.new(tensor.I32, 1); err == nil {
		s.momentum, err = s.like(params)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.groups = groups(params, 3, func(i int, p Param) []*tensor.Tensor { return []*tensor.Tensor{p.Grad, p.Value, s.momentum[i]} })
	return s, nil
}

// Step implements Optimizer.
func (s *sgd) Step(u Update) error {
	for _, g := range s.groups {
		args := optim.MultiTensorSGDArgs{
			NoopFlag: s.flag, TensorLists: g.lists, LR: float32(u.LR * g.scale), WD: g.weightDecay(u),
			Momentum: float32(s.cfg.SGDMomentum), Scale: 1,
		}
		if err := s.op.Call(args); err != nil {
			return fmt.Errorf("optimizer step: %w", err)
		}
	}
	return nil
}

// State implements Optimizer.
func (s *sgd) State() []State { return []State{{momentumBuffer, s.momentum}} }

var _ Optimizer = (*sgd)(nil)
