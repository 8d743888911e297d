package pipeline

import (
	"cmp"
	"slices"
)

// counters makes the passes of a rank with two chunks, the micro batches of each kind in order.
type counters struct {
	passes []Pass
	next   [Backward + 1][2]int
	weight []Pass // backward passes whose gradients of weights are left
}

func (c *counters) forward(chunk int) { c.add(Forward, chunk) }

// whole computes both gradients at once.
func (c *counters) whole(chunk int) { c.add(Backward, chunk) }

// input leaves the gradients of the weights for later.
func (c *counters) input(chunk int) {
	i := c.add(BackwardInput, chunk)
	c.weight = append(c.weight, Pass{BackwardWeights, i, chunk})
}

// weights computes the gradients of weights that were left first.
func (c *counters) weights() {
	c.passes = append(c.passes, c.weight[0])
	c.weight = c.weight[1:]
}

func (c *counters) add(k Kind, chunk int) int {
	counted := k
	if k == Backward {
		counted = BackwardInput
	}
	i := c.next[counted][chunk]
	c.next[counted][chunk]++
	c.passes = append(c.passes, Pass{k, i, chunk})
	return i
}

// zeroBubbleV fills the V with forward passes until the first backward pass, and then alternates
// between the chunks so that every rank always has one pass of each.
func zeroBubbleV(s Shape, times Times) Table {
	return fastest(s, times, arrangements([]plan{{orderV, 2 * s.Ranks}}, times, 0))
}

// orderV is the order of ZBV without the gradients of weights. Its form needs 2·ranks − 1 micro
// batches; with less, those that are missing are left out.
func orderV(s Shape) [][]Pass {
	p, m := s.Ranks, max(s.MicroBatches, 2*s.Ranks-1)
	return tableOf(s, func(rank int) []Pass {
		var c counters
		for range 2*(p-rank) - 1 {
			c.forward(0)
		}
		for range rank {
			c.forward(1)
			c.forward(0)
		}
		for range p - rank {
			c.forward(1)
			c.input(1)
		}
		for c.next[Forward][1] < m {
			if c.next[Forward][0] < m {
				c.forward(0)
			}
			c.input(0)
			c.forward(1)
			c.input(1)
		}
		for c.next[BackwardInput][0] < m {
			c.input(0)
			if c.next[BackwardInput][1] < m {
				c.input(1)
			}
		}
		return slices.DeleteFunc(c.passes, func(p Pass) bool { return p.MicroBatch >= s.MicroBatches })
	}).Passes
}

// dualPipeV is the half of DualPipe's schedule that one direction of micro batches has. Where that
// runs a forward and a backward pass at once, they follow each other here.
func dualPipeV(s Shape, _ Times) Table {
	p := s.Ranks
	return tableOf(s, func(rank int) []Pass {
		var c counters
		for range 2 * (p - 1 - rank) {
			c.forward(0)
		}
		for range rank + 1 {
			c.forward(0)
			c.forward(1)
		}
		for range p - 1 - rank {
			c.input(1)
			c.weights()
			c.forward(1)
		}
		for range s.MicroBatches - 2*p + rank + 1 {
			c.forward(0)
			c.whole(1)
			c.forward(1)
			c.whole(0)
		}
		for range p - 1 - rank {
			c.whole(1)
			c.forward(1)
			c.whole(0)
		}
		// The second half of the last backward passes leaves the gradients of weights for later.
		last := 2 * (rank + 1)
		for i := range last {
			chunk := 1 - i%2
			if i < last/2 {
				c.whole(chunk)
			} else {
				c.input(chunk)
			}
		}
		for range p - 1 - rank {
			c.weights()
			c.input(0)
		}
		for len(c.weight) > 0 {
			c.weights()
		}
		return c.passes
	})
}

// block is what a V schedule repeats for each micro batch, in slots that are as long as a pass:
// how many slots lie between the same pass on neighbouring ranks, and where the V turns. A rank
// begins a block every six slots, four for the forward and backward passes of its chunks and two
// for the gradients of their weights.
type block struct {
	down, up, back, out int // forward of chunks 0 and 1, backward of chunks 1 and 0
	turns               [3]int
}

// period is the length of a block on a rank.
const period = 6

// starts returns the slots of the forward passes of chunks 0 and 1 and of the backward passes of
// chunks 1 and 0 of the first micro batch.
func (b block) starts(ranks, rank int) [4]int {
	last := ranks - 1
	f0 := b.down * rank
	f1 := b.down*last + b.turns[0] + b.up*(last-rank)
	b1 := b.down*last + b.turns[0] + b.up*last + b.turns[1] + b.back*rank
	b0 := b.down*last + b.turns[0] + b.up*last + b.turns[1] + b.back*last + b.turns[2] + b.out*(last-rank)
	return [4]int{f0, f1, b1, b0}
}

// fit returns the block with all turns such that no two passes of a rank need the same slot, those
// that hold activations for a shorter time first.
func (b block) fit(ranks int) []block {
	var fitted []block
	for i := range period * period * period {
		b.turns = [3]int{1 + i%period, 1 + i/period%period, 1 + i/period/period}
		if b.fits(ranks) {
			fitted = append(fitted, b)
		}
	}
	slices.SortStableFunc(fitted, func(a, b block) int {
		return cmp.Compare(a.turns[0]+2*a.turns[1]+a.turns[2], b.turns[0]+2*b.turns[1]+b.turns[2])
	})
	return fitted
}

func (b block) fits(ranks int) bool {
	for rank := range min(ranks, period) {
		var used [period]bool
		for _, slot := range b.starts(ranks, rank) {
			if used[slot%period] {
				return false
			}
			used[slot%period] = true
		}
	}
	return true
}

// order returns the order of forward and backward passes that follows from repeating a block, and
// the most chunks that a rank holds when the gradients of weights take the free slots.
func (b block) order(s Shape) (order [][]Pass, held int) {
	type slotted struct {
		slot int
		Pass
	}
	passes := [4]Pass{{Kind: Forward}, {Kind: Forward, Chunk: 1}, {Kind: BackwardInput, Chunk: 1}, {Kind: BackwardInput}}
	t := tableOf(s, func(rank int) []Pass {
		list := make([]slotted, 0, 4*s.MicroBatches)
		for k, start := range b.starts(s.Ranks, rank) {
			for i := range s.MicroBatches {
				p := passes[k]
				p.MicroBatch = i
				list = append(list, slotted{start + period*i, p})
			}
		}
		slices.SortFunc(list, func(a, b slotted) int { return cmp.Compare(a.slot, b.slot) })
		result := make([]Pass, len(list))
		slot, left, now := 0, 0, 0
		for i, p := range list {
			weights := min(left, p.slot-slot)
			left, now, slot = left-weights, now-weights, p.slot+1
			if p.Kind == Forward {
				now++
				held = max(held, now)
			} else {
				left++
			}
			result[i] = p.Pass
		}
		return result
	})
	return t.Passes, held
}

// The blocks of V-half and V-min in their paper: with two slots between neighbours on the way down
// and back, activations are held for half as long as in 1F1B, and with one for a third.
var (
	halfBlock = block{down: 2, up: 1, back: 2, out: 1}
	minBlock  = block{down: 1, up: 1, back: 1, out: 1}
)

func vHalf(s Shape, times Times) Table { return repeat(s, times, halfBlock) }
func vMin(s Shape, times Times) Table  { return repeat(s, times, minBlock) }

// repeat is the fastest schedule that repeats a block and needs the least memory.
func repeat(s Shape, times Times, b block) Table {
	return fastest(s, times, arrangements(b.plans(s), times, 6*s.Ranks))
}

// plans returns the ways to repeat a block that need the least memory.
func (b block) plans(s Shape) []plan {
	var plans []plan
	for _, fitted := range b.fit(s.Ranks) {
		p := fitted.plan(s)
		if len(plans) > 0 && p.limit < plans[0].limit {
			plans = nil
		}
		if len(plans) == 0 || p.limit == plans[0].limit {
			plans = append(plans, p)
		}
	}
	return plans
}

// plan returns the order that follows from a block, with the memory that it needs.
func (b block) plan(s Shape) plan {
	s.MicroBatches = 2 * s.Ranks
	_, held := b.order(s)
	return plan{func(s Shape) [][]Pass {
		order, _ := b.order(s)
		return order
	}, held}
}
