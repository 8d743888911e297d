package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
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

// multiTensorSGD follows ops.MultiTensorSGD, in one pass over all lists.
func multiTensorSGD(e *opregistry.Exec, a ops.MultiTensorSGDArgs) error {
	var v views
	v.lists(a.TensorLists)
	flag := v.int32s("noop_flag", a.NoopFlag)
	if v.err != nil || flag[0] != 0 {
		return v.err
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
	g, p, mom := lineOf(c.lists[0][at]), lineOf(c.lists[1][at]), lineOf(c.lists[2][at])
	var update, gRoom, pRoom, momRoom [listTile]float32
	for ; lo < hi; lo += listTile {
		n := min(listTile, hi-lo)
		weights, velocity := p.piece(0, lo, n, pRoom[:]), mom.piece(0, lo, n, momRoom[:])
		c.by.take(weights, velocity, g.piece(0, lo, n, gRoom[:]), update[:n])
		p.settle(0, lo, weights)
		if c.by.momentum != 0 {
			mom.settle(0, lo, velocity)
		}
		if len(c.lists) == 4 {
			rounded := lineOf(c.lists[3][at])
			rounded.put(0, lo, weights)
		}
	}
}

// take makes the step for some weights; d is room.
func (s *sgdStep) take(p, mom, g, d []float32) {
	simd.Scale(s.scale, d, g)
	if s.decay != 0 && !s.decayLast {
		simd.Axpy(s.decay, p, d)
	}
	if s.momentum != 0 {
		if s.first {
			copy(mom, d)
		} else {
			simd.Scale(s.momentum, mom, mom)
			simd.Axpy(s.rest, d, mom)
		}
		if s.nesterov {
			simd.Axpy(s.momentum, mom, d)
		} else {
			copy(d, mom)
		}
	}
	if s.decay != 0 && s.decayLast {
		simd.Axpy(s.decay, p, d)
	}
	simd.Axpy(-s.rate, d, p)
}
