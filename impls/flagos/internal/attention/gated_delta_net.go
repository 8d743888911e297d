package attention

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
)

// deltaNet is a call of attention.GatedDeltaNetForward; its items are the heads of the sequences.
type deltaNet struct {
	host.Cut
	exec             *opregistry.Exec
	q, k, v, out     host.Heads
	g, beta          host.Matrix // [b·s, h]
	initial, final   host.Matrix // [b·h·dk, dv]; without rows if there is none
	seq, heads       int
	dk, dv           int
	normalise, store bool
}

var deltaNetKernel = parallel.NewKernel((*deltaNet).part)

// gatedDeltaNet implements attention.GatedDeltaNetForward. The state is f32. Scratch: the state of
// a head and some positions per part.
func gatedDeltaNet(e *opregistry.Exec, a attention.GatedDeltaNetForwardArgs) error {
	var v host.Views
	shape := a.Query.Shape()
	c := deltaNet{
		exec: e, q: v.Heads("query", a.Query, attention.BSHD), k: v.Heads("key", a.Key, attention.BSHD), v: v.Heads("value", a.Value, attention.BSHD),
		out: v.Heads("output", a.Output, attention.BSHD), g: v.Matrix("g", a.G), beta: v.Matrix("beta", a.Beta),
		seq: shape[1], heads: shape[2], dk: shape[3], dv: a.Value.Shape()[3], normalise: a.UseQKL2Norm,
	}
	if a.InitialState != nil {
		c.initial = v.Matrix("initial_state", a.InitialState)
	}
	if a.FinalState != nil {
		c.final, c.store = v.Matrix("final_state", a.FinalState), true
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(shape[0]*c.heads, c.seq*c.dk*c.dv+1)
	deltaNetKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

// deltaPositions is how many positions go through a block of a state at a time.
const deltaPositions = 64

func (c *deltaNet) part(part int) {
	lo, hi := c.Bounds(part)
	size, dk, dv := c.dk*c.dv, c.dk, c.dv
	buf := c.exec.Scratch(size + deltaPositions*(2*dk+dv))
	state, rest := buf[:size], buf[size:]
	keys, queries, values := rest[:deltaPositions*dk], rest[deltaPositions*dk:][:deltaPositions*dk], rest[2*deltaPositions*dk:]
	var positions [deltaPositions]layers.DeltaPosition
	for i := lo; i < hi; i++ {
		sequence, head := i/c.heads, i%c.heads
		c.load(state, i)
		for t := 0; t < c.seq; t += deltaPositions {
			n := min(deltaPositions, c.seq-t)
			for j := range n {
				p := &positions[j]
				p.K, p.Q = keys[j*dk:][:dk], queries[j*dk:][:dk]
				c.position(p, sequence, t+j, head)
				c.v.Vector(values[j*dv:][:dv], sequence, t+j, head)
			}
			c.eachBlock(state, func(block []float32, first, cols int) {
				for j := range n {
					x := values[j*dv+first:][:cols]
					layers.DeltaStep(block, &positions[j], x, x)
				}
			})
			for j := range n {
				c.out.Put(sequence, t+j, head, values[j*dv:][:dv])
			}
		}
		if c.store {
			c.eachBlock(state, func(block []float32, first, cols int) {
				for j := range dk {
					c.final.Put(i*dk+j, first, block[j*cols:][:cols])
				}
			})
		}
	}
	c.exec.Release(buf)
}

// eachBlock calls do for the blocks of columns of a state, which lie one after the other, with the
// first column of a block and their number.
func (c *deltaNet) eachBlock(state []float32, do func(block []float32, first, cols int)) {
	for first := 0; first < c.dv; first += layers.DeltaColumns {
		cols := min(layers.DeltaColumns, c.dv-first)
		do(state[first*c.dk:][:cols*c.dk], first, cols)
	}
}

// load fills the state of a head of a sequence.
func (c *deltaNet) load(state []float32, at int) {
	if c.initial.Rows == 0 {
		clear(state)
		return
	}
	c.eachBlock(state, func(block []float32, first, cols int) {
		for j := range c.dk {
			row := block[j*cols:][:cols]
			copy(row, c.initial.Piece(at*c.dk+j, first, cols, row))
		}
	})
}

// position loads the key and the query of a position, and computes its numbers.
func (c *deltaNet) position(p *layers.DeltaPosition, sequence, t, head int) {
	c.q.Vector(p.Q, sequence, t, head)
	c.k.Vector(p.K, sequence, t, head)
	scale := 1 / math.Sqrt(float64(c.dk))
	if c.normalise {
		scale /= norm(p.Q)
		vector.Scale(float32(1/norm(p.K)), p.K, p.K)
	}
	vector.Scale(float32(scale), p.Q, p.Q)
	p.Product = vector.Dot(p.K, p.Q)
	var number [1]float32
	at := sequence*c.seq + t
	p.Decay = float32(math.Exp(float64(c.g.Piece(at, head, 1, number[:])[0])))
	p.Beta = c.beta.Piece(at, head, 1, number[:])[0]
}

// norm returns the Euclidean norm of a vector, at least 1e-6.
func norm(x []float32) float64 { return max(math.Sqrt(vector.SumSquares(x)), 1e-6) }
