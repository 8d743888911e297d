package model

import (
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/tensor"
)

// stepPlan tells ops what a step of a Decoder computes. Its integers lie in one tensor, so that one
// copy takes them to a device.
type stepPlan struct {
	all  *tensor.Tensor // i32
	host []int32        // the elements of all in the next step
	next int            // the first of them without a use

	newEnds, lengthEnds, starts, rowEnds []int32 // those of the cache in host
	chosen                               []int32 // in host: the rows whose logits are wanted

	chosenRows *tensor.Tensor // chosen for ops
}

// newStepPlan returns the plan of the steps of a decoder, and a cache without keys and values that
// the plan describes to ops.
func newStepPlan(s DecoderSettings, a *memory.Arena) (*stepPlan, *KVCache) {
	n := 6*(s.Slots+1) + s.Rows
	p, c := &stepPlan{all: a.New(tensor.I32, n), host: make([]int32, n)}, &KVCache{Slots: s.Slots, Capacity: s.Capacity}
	var table, firsts []int32
	c.Table, table = p.take(s.Slots)
	c.Firsts, firsts = p.take(s.Slots + 1)
	c.NewEnds, p.newEnds = p.take(s.Slots + 1)
	c.LengthEnds, p.lengthEnds = p.take(s.Slots + 1)
	c.Starts, p.starts = p.take(s.Slots + 1)
	c.RowEnds, p.rowEnds = p.take(s.Slots + 2)
	p.chosenRows, p.chosen = p.take(s.Rows)
	if c.Table != nil {
		c.Table = memory.Must(c.Table.Reshape(s.Slots, 1))
	}
	for i := range s.Slots {
		table[i], firsts[i+1] = int32(i), int32((i+1)*s.Capacity)
	}
	return p, c
}

// take returns the next n elements, for ops and for the host.
func (p *stepPlan) take(n int) (*tensor.Tensor, []int32) {
	lo := p.next
	p.next += n
	return memory.Rows(p.all, lo, p.next), p.host[lo:p.next:p.next]
}

// send gives ops the plan of the next step.
func (p *stepPlan) send() error {
	return tensor.Fill(p.all, func(to []int32) { copy(to, p.host) })
}
