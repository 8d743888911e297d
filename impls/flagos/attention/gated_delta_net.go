package attention

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
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
// a head per part.
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

func (c *deltaNet) part(part int) {
	lo, hi := c.Bounds(part)
	size := c.dk * c.dv
	buf := c.exec.Scratch(size + 2*c.dk + 2*c.dv + 2)
	state, rest := buf[:size], buf[size:]
	q, k := rest[:c.dk], rest[c.dk:][:c.dk]
	delta, out := rest[2*c.dk:][:c.dv], rest[2*c.dk+c.dv:][:c.dv]
	scalar := rest[2*c.dk+2*c.dv:]
	for i := lo; i < hi; i++ {
		sequence, head := i/c.heads, i%c.heads
		if c.initial.Rows > 0 {
			for j := range c.dk {
				row := state[j*c.dv:][:c.dv]
				copy(row, c.initial.Piece(i*c.dk+j, 0, c.dv, row))
			}
		} else {
			clear(state)
		}
		for t := range c.seq {
			c.q.Vector(q, sequence, t, head)
			c.k.Vector(k, sequence, t, head)
			c.v.Vector(delta, sequence, t, head)
			scale := 1 / math.Sqrt(float64(c.dk))
			if c.normalise {
				scale /= norm(q)
				vector.Scale(float32(1/norm(k)), k, k)
			}
			vector.Scale(float32(scale), q, q)
			at := sequence*c.seq + t
			decay := float32(math.Exp(float64(c.g.Piece(at, head, 1, scalar)[0])))
			beta := c.beta.Piece(at, head, 1, scalar)[0]
			c.step(state, q, k, delta, out, decay, beta)
			c.out.Put(sequence, t, head, out)
		}
		if c.store {
			for j := range c.dk {
				c.final.Put(i*c.dk+j, 0, state[j*c.dv:][:c.dv])
			}
		}
	}
	c.exec.Release(buf)
}

// step updates the state with a key and a value, which delta holds, and reads it with a query.
func (c *deltaNet) step(state, q, k, delta, out []float32, decay, beta float32) {
	for j, x := range k {
		row := state[j*c.dv:][:c.dv]
		if decay != 1 {
			vector.Scale(decay, row, row)
		}
		vector.Axpy(-x, row, delta)
	}
	clear(out)
	for j, x := range k {
		row := state[j*c.dv:][:c.dv]
		vector.Axpy(beta*x, delta, row)
		vector.Axpy(q[j], row, out)
	}
}

// norm returns the Euclidean norm of a vector, at least 1e-6.
func norm(x []float32) float64 { return max(math.Sqrt(vector.SumSquares(x)), 1e-6) }
