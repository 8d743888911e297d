package flagos

import (
	"sort"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// ropeImpls returns the impls of the family.
func ropeImpls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(rope.FusedRopeForward, fusedRopeForward),
		host.Impl(rope.FusedRopeBackward, fusedRopeBackward),
		host.Impl(rope.FusedQKVRopeForward, fusedQKVRopeForward),
		host.Impl(rope.FusedQKVRopeBackward, fusedQKVRopeBackward),
	}
}

// ropeBlock is the number of positions whose cosines and sines are kept in the first-level cache
// while all sequences and heads of those positions are processed.
const ropeBlock = 16

type rotation struct {
	host.Cut
	exec        *opregistry.Exec
	x, y        host.Heads
	freqs       host.Matrix
	starts      []int32 // of each sequence, nil for 0
	ends        []int32 // cumulative lengths of whole packed sequences, else nil
	seq, batch  int     // of sequences that are not packed
	heads, d    int
	rank, size  int // of context parallelism
	shared      bool
	same        bool // y is x
	interleaved bool
	backward    bool
}

var ropeKernel = parallel.NewKernel((*rotation).part)

// fusedRopeForward implements rope.FusedRopeForward.
func fusedRopeForward(e *opregistry.Exec, a rope.FusedRopeArgs) error {
	return rotate(e, a, rope.FusedRopeForward.Name(), false)
}

// fusedRopeBackward implements rope.FusedRopeBackward.
func fusedRopeBackward(e *opregistry.Exec, a rope.FusedRopeArgs) error {
	return rotate(e, a, rope.FusedRopeBackward.Name(), true)
}

func rotate(e *opregistry.Exec, a rope.FusedRopeArgs, op string, backward bool) error {
	var v host.Views
	shape := a.Input.Shape()
	c := rotation{
		exec: e,
		x:    v.Heads("input", a.Input, a.QKVFormat), y: v.Heads("output", a.Output, a.QKVFormat),
		freqs: v.Matrix("freqs", a.Freqs),
		heads: shape[len(shape)-2], d: shape.Cols(),
		rank: a.CPRank, size: max(a.CPSize, 1),
		same:        tensor.SameView(a.Input, a.Output),
		interleaved: a.Interleaved, backward: backward,
	}
	if a.StartPositions != nil {
		c.starts = v.Int32s("start_positions", a.StartPositions)
	}
	switch a.QKVFormat {
	case attention.SBHD:
		c.seq, c.batch = shape[0], shape[1]
	case attention.BSHD:
		c.batch, c.seq = shape[0], shape[1]
	default:
		c.ends = v.Int32s("cu_seqlens", a.CuSeqlens)
	}
	if v.Err != nil {
		return v.Err
	}
	if shape.NumElements() == 0 {
		return nil
	}
	each := c.heads * c.d
	switch {
	case c.ends != nil:
		c.Cut = host.CutItems(shape[0], each)
	case c.sharesAngles():
		c.shared = true
		c.Cut = host.CutItems(c.seq, each*c.batch)
	default:
		c.Cut = host.CutItems(c.seq*c.batch, each)
	}
	ropeKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

// sharesAngles reports whether all sequences start at one position.
func (c *rotation) sharesAngles() bool {
	for _, s := range c.starts {
		if s != c.starts[0] {
			return false
		}
	}
	return true
}

// position returns the row of angles of step s of a sequence with n local steps. With context
// parallelism these are two chunks of the whole sequence.
func (c *rotation) position(sequence, s, n int) int {
	if c.size > 1 {
		half := n / 2
		if s < half {
			s += c.rank * half
		} else {
			s += (2*c.size-1-c.rank)*half - half
		}
	}
	if c.starts != nil {
		s += int(c.starts[sequence])
	}
	return s
}

func (c *rotation) part(part int) {
	size := ropeBlock * c.freqs.Cols
	scratch := c.exec.Scratch(2*size + c.stepFloats())
	t := &angles{cos: scratch[:size], sin: scratch[size : 2*size], d2: c.freqs.Cols, buf: scratch[2*size:]}
	lo, hi := c.Bounds(part)
	switch {
	case c.ends != nil:
		c.packed(t, lo, hi)
	case c.shared:
		c.together(t, lo, hi)
	default:
		for token := lo; token < hi; token++ {
			b, s := token/c.seq, token%c.seq
			t.set(c, 0, c.position(b, s, c.seq))
			c.turn(t, b, s, 1)
		}
	}
	c.exec.Release(scratch)
}

// together rotates the steps [lo, hi) of all sequences.
func (c *rotation) together(t *angles, lo, hi int) {
	for ; lo < hi; lo += ropeBlock {
		end := min(lo+ropeBlock, hi)
		for s := lo; s < end; s++ {
			t.set(c, s-lo, c.position(0, s, c.seq))
		}
		for b := range c.batch {
			c.turn(t, b, lo, end-lo)
		}
	}
}

// end returns the local token after the first b packed sequences.
func (c *rotation) end(b int) int { return int(c.ends[b]) / c.size }

// packed rotates the tokens [lo, hi) of packed sequences.
func (c *rotation) packed(t *angles, lo, hi int) {
	b := sort.Search(len(c.ends)-1, func(b int) bool { return c.end(b+1) > lo })
	for token := lo; token < hi; token++ {
		for c.end(b+1) <= token {
			b++
		}
		first := c.end(b)
		t.set(c, 0, c.position(b, token-first, c.end(b+1)-first))
		c.turn(t, 0, token, 1)
	}
}

// turn rotates all heads of a number of steps by the first angles of t.
func (c *rotation) turn(t *angles, sequence, step, steps int) {
	if c.x.Narrow() {
		for s := range steps {
			c.turnHalf(t, s, sequence, step+s)
		}
		return
	}
	x, y := c.x.From(sequence, step), c.y.From(sequence, step)
	if !c.interleaved {
		size := layers.Turns{Steps: steps, Groups: 1, Heads: c.heads, Columns: t.d2 / 2, Angles: t.d2}
		c.halves(t, size, y, layers.Pitch{Step: c.y.Step, Head: c.y.Head}, x, layers.Pitch{Step: c.x.Step, Head: c.x.Head})
	}
	if !c.interleaved && (c.d == t.d2 || c.same) {
		return
	}
	for s := range steps {
		cos, sin := t.row(s)
		for h := range c.heads {
			x, y := x[s*c.x.Step+h*c.x.Head:][:c.d], y[s*c.y.Step+h*c.y.Head:][:c.d]
			if c.interleaved {
				layers.RotatePairs(y[:t.d2], x, cos, sin)
			}
			if !c.same {
				copy(y[t.d2:], x[t.d2:])
			}
		}
	}
}

// halves rotates heads whose pairs are the elements of two halves.
func (c *rotation) halves(t *angles, size layers.Turns, y []float32, to layers.Pitch, x []float32, from layers.Pitch) {
	half := t.d2 / 2
	if c.backward {
		layers.RotateHalves(size, y[half:], y, to, x[half:], x, from, t.cos[half:], t.cos, t.sin, t.sin[half:])
	} else {
		layers.RotateHalves(size, y, y[half:], to, x, x[half:], from, t.cos, t.cos[half:], t.sin, t.sin[half:])
	}
}
