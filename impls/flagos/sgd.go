package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

type sgd struct {
	lists [][]*tensor.Tensor
	by    sgdStep
}

// sgdStep holds the numbers of a step.
type sgdStep struct {
	scale, rate, decay, momentum, rest float32 // rest is 1 − dampening
	first, nesterov, decayLast         bool
}

var sgdKernel = parallel.NewKernel((*sgd).part)

// multiTensorSGD implements optim.MultiTensorSGD, in one pass over all lists.
func multiTensorSGD(e *opregistry.Exec, a optim.MultiTensorSGDArgs) error {
	var v host.Views
	requireLists(&v, a.TensorLists)
	flag := v.Int32s("noop_flag", a.NoopFlag)
	if v.Err != nil || flag[0] != 0 {
		return v.Err
	}
	step := sgdStep{
		scale: a.Scale, rate: a.LR, decay: a.WD, momentum: a.Momentum, rest: float32(1 - float64(a.Dampening)),
		first: a.FirstRun, nesterov: a.Nesterov, decayLast: a.WDAfterMomentum,
	}
	sgdKernel.Run(e.Pool(), blocks(a.TensorLists[0]), sgd{lists: a.TensorLists, by: step})
	return nil
}

func (c *sgd) part(part int) {
	at, lo, hi := locate(c.lists[0], part)
	g, p, mom := host.Flatten(c.lists[0][at]), host.Flatten(c.lists[1][at]), host.Flatten(c.lists[2][at])
	var update, gBuf, pBuf, momBuf [listTile]float32
	for ; lo < hi; lo += listTile {
		n := min(listTile, hi-lo)
		weights, velocity := p.Piece(0, lo, n, pBuf[:]), mom.Piece(0, lo, n, momBuf[:])
		c.by.take(weights, velocity, g.Piece(0, lo, n, gBuf[:]), update[:n])
		p.Settle(0, lo, weights)
		if c.by.momentum != 0 {
			mom.Settle(0, lo, velocity)
		}
		if len(c.lists) == 4 {
			rounded := host.Flatten(c.lists[3][at])
			rounded.Put(0, lo, weights)
		}
	}
}

// take performs the step for some weights; d is scratch.
func (s *sgdStep) take(p, mom, g, d []float32) {
	vector.Scale(s.scale, d, g)
	if s.decay != 0 && !s.decayLast {
		vector.Axpy(s.decay, p, d)
	}
	if s.momentum != 0 {
		if s.first {
			copy(mom, d)
		} else {
			vector.Scale(s.momentum, mom, mom)
			vector.Axpy(s.rest, d, mom)
		}
		if s.nesterov {
			vector.Axpy(s.momentum, mom, d)
		} else {
			copy(d, mom)
		}
	}
	if s.decay != 0 && s.decayLast {
		vector.Axpy(s.decay, p, d)
	}
	vector.Axpy(-s.rate, d, p)
}
