package optim

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/tensor"
)

// Param is a weight and its gradient, both f32 and of one shape.
type Param struct {
	Value, Grad *tensor.Tensor
	Decay       bool    // whether weight decay applies
	LRScale     float64 // factor of its learning rate; 0 means 1

	// Matrices are the rows of the matrices that the weight holds one after the other; nil for a
	// weight that is no matrix of a layer. InOut says that columns belong to outputs, not rows.
	Matrices []int
	InOut    bool

	Divided *Divided // nil for a weight that is whole
}

// Divided says that this rank has a part of each matrix of a weight, and others the rest. All parts
// have the same size.
type Divided struct {
	Ranks   int
	Columns bool                       // the matrices are divided by columns, not by rows
	Sum     func(*tensor.Tensor) error // replaces a tensor by its sum over the ranks
}

func (p Param) lrScale() float64 { return cmp.Or(p.LRScale, 1) }

// Update says how weights are updated.
type Update struct {
	Step        int // of the updates so far with this one, from 1
	LR          float64
	WeightDecay float64
}

// Optimizer updates weights with their gradients. It belongs to one goroutine.
type Optimizer interface {
	// Step updates all weights. The learning rate of a weight is that of the update times its
	// factor.
	Step(u Update) error

	// State returns what the optimizer keeps between steps. A checkpoint holds it, and a resumed
	// run fills the tensors before its first step.
	State() []State

	// Close returns the memory of the state.
	Close() error
}

// State is one quantity that an optimizer keeps of each weight.
type State struct {
	Name    string           // as in checkpoints: "exp_avg"
	Tensors []*tensor.Tensor // in the order of the weights, of their shapes; nil for a weight without one
}

// New returns the optimizer of a configuration, whose state is zero and in memory of the backend.
func New(cfg OptimizerConfig, params []Param, m *opmanager.Manager, backend device.Backend) (Optimizer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	switch cfg.Optimizer {
	case SGD:
		return newSGD(cfg, params, m, backend)
	case Muon:
		return newMuon(cfg, params, m, backend)
	default:
		return newAdam(cfg, params, m, backend)
	}
}

// momentumBuffer is the name of the momentum of SGD and Muon.
const momentumBuffer = "momentum_buffer"

// memory allocates the state of an optimizer.
type memory struct {
	backend device.Backend
	owned   []*tensor.Tensor
}

func (m *memory) new(d tensor.DType, shape ...int) (*tensor.Tensor, error) {
	t, err := tensor.New(m.backend, d, shape...)
	if err != nil {
		return nil, fmt.Errorf("allocate optimizer state: %w", err)
	}
	m.owned = append(m.owned, t)
	return t, nil
}

// like allocates a zero f32 tensor of the shape of each weight.
func (m *memory) like(params []Param) ([]*tensor.Tensor, error) {
	all := make([]*tensor.Tensor, len(params))
	for i, p := range params {
		var err error
		if all[i], err = m.new(tensor.F32, p.Value.Shape()...); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Close returns the memory.
func (m *memory) Close() error {
	var faults []error
	for _, t := range m.owned {
		faults = append(faults, t.Release())
	}
	m.owned = nil
	return errors.Join(faults...)
}

// group holds the weights with the same decay and factor of the learning rate.
type group struct {
	lists [][]*tensor.Tensor // as an op takes them
	decay bool
	scale float64
}

// weightDecay returns the weight decay of the group.
func (g *group) weightDecay(u Update) float32 {
	if !g.decay {
		return 0
	}
	return float32(u.WeightDecay)
}

// groups divides weights, for an op that takes n lists; tensors returns those of a weight.
func groups(params []Param, n int, tensors func(i int, p Param) []*tensor.Tensor) []*group {
	var all []*group
	find := func(p Param) *group {
		scale := p.lrScale()
		for _, g := range all {
			if g.decay == p.Decay && g.scale == scale {
				return g
			}
		}
		g := &group{lists: make([][]*tensor.Tensor, n), decay: p.Decay, scale: scale}
		all = append(all, g)
		return g
	}
	for i, p := range params {
		g := find(p)
		for k, t := range tensors(i, p) {
			g.lists[k] = append(g.lists[k], t)
		}
	}
	return all
}
