package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// projection is a call of rope.FusedQKVRopeForward or its gradient. Its items are positions if all
// sequences start at one, else tokens.
type projection struct {
	host.Cut
	exec       *opregistry.Exec
	q, k       members
	v          members // which are copied
	sameAngles bool    // of queries and keys
	steps      int     // at a time, whose heads stay in the first-level cache
}

// stepBlock is how many elements of a projection are read before the next member is.
const stepBlock = 1 << 12

// members are heads of the groups of a projection. The rotation is that of one head of each group,
// or of all heads of one group, whichever are more.
type members struct {
	rotation
	turns        int // rotations
	xNext, yNext int // distance between the heads of two of them
}

var projectionKernel = parallel.NewKernel((*projection).part)

// fusedQKVRopeForward implements rope.FusedQKVRopeForward.
func fusedQKVRopeForward(e *opregistry.Exec, a rope.FusedQKVRopeArgs) error {
	return rotateProjection(e, a, false)
}

// fusedQKVRopeBackward implements rope.FusedQKVRopeBackward.
func fusedQKVRopeBackward(e *opregistry.Exec, a rope.FusedQKVRopeArgs) error {
	return rotateProjection(e, a, true)
}

func rotateProjection(e *opregistry.Exec, a rope.FusedQKVRopeArgs, backward bool) error {
	var v host.Views
	qkv := v.Heads("qkv", a.QKV, a.QKVFormat)
	q, k, value := v.Heads("q", a.Q, a.QKVFormat), v.Heads("k", a.K, a.QKVFormat), v.Heads("v", a.V, a.QKVFormat)
	shape, widths := a.QKV.Shape(), a.QKVSplitArgList
	r := rotation{seq: shape[0], batch: shape[1], heads: shape[2], rank: a.CPRank, size: max(a.CPSize, 1), interleaved: a.Interleaved, backward: backward}
	if a.QKVFormat == attention.BSHD {
		r.seq, r.batch = r.batch, r.seq
	}
	if a.StartPositions != nil && r.size == 1 {
		r.starts = v.Int32s("start_positions", a.StartPositions)
	}
	c := projection{exec: e, sameAngles: tensor.SameView(a.QFreqs, a.KFreqs)}
	qAngles, kAngles := v.Matrix("q_freqs", a.QFreqs), v.Matrix("k_freqs", a.KFreqs)
	if v.Err != nil {
		return v.Err
	}
	if shape.NumElements() == 0 {
		return nil
	}
	c.q = r.members(qkv, q, widths[1], widths[0]/widths[1])
	c.k = r.members(qkv.Shift(widths[0]), k, widths[1], 1)
	c.v = r.members(qkv.Shift(widths[0]+widths[1]), value, widths[2], min(widths[2], 1))
	c.q.freqs, c.k.freqs = qAngles, kAngles
	items, each := r.seq, r.heads*shape[3]*r.batch
	if c.q.shared = r.sharesAngles(); !c.q.shared {
		items, each = r.seq*r.batch, r.heads*shape[3]
	}
	c.steps = max(stepBlock/(r.heads*shape[3]), 1)
	c.Cut = host.CutItems(items, each)
	projectionKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

// members returns the rotation of heads of d elements, of which each group has n side by side in a
// projection and in a tensor of their own.
func (r rotation) members(fused, own host.Heads, d, n int) members {
	m := members{rotation: r, turns: n, xNext: d, yNext: own.Head}
	m.x, m.y, m.d = fused, own, d
	m.y.Head = n * own.Head
	if n > m.heads {
		m.turns, m.heads = m.heads, n
		m.xNext, m.x.Head = m.x.Head, m.xNext
		m.yNext, m.y.Head = m.y.Head, m.yNext
	}
	if r.backward {
		m.x, m.y = m.y, m.x
		m.xNext, m.yNext = m.yNext, m.xNext
	}
	return m
}

func (c *projection) part(part int) {
	qSize, kSize := 2*ropeBlock*c.q.freqs.Cols, 2*ropeBlock*c.k.freqs.Cols
	scratch := c.exec.Scratch(qSize + kSize + max(c.q.stepFloats(), c.k.stepFloats()))
	buf := scratch[qSize+kSize:]
	q := &angles{cos: scratch[:qSize/2], sin: scratch[qSize/2:][:qSize/2], d2: c.q.freqs.Cols, buf: buf}
	k := &angles{cos: scratch[qSize:][:kSize/2], sin: scratch[qSize+kSize/2:][:kSize/2], d2: c.k.freqs.Cols, buf: buf}
	if c.sameAngles {
		k = q
	}
	lo, hi := c.Bounds(part)
	for end := lo; lo < hi; lo = end {
		end = min(lo+ropeBlock, hi)
		sequence, last, step := 0, c.q.batch, lo
		if !c.q.shared {
			sequence, step = lo/c.q.seq, lo%c.q.seq
			last, end = sequence+1, min(end, lo-step+c.q.seq)
		}
		for i := range end - lo {
			at := c.q.position(sequence, step+i, c.q.seq)
			q.set(&c.q.rotation, i, at)
			if !c.sameAngles {
				k.set(&c.k.rotation, i, at)
			}
		}
		for ; sequence < last; sequence++ {
			for i := 0; i < end-lo; i += c.steps {
				n := min(c.steps, end-lo-i)
				c.q.turnAll(q, i, sequence, step+i, n)
				c.k.turnAll(k, i, sequence, step+i, n)
				c.v.copy(sequence, step+i, n)
			}
		}
	}
	c.exec.Release(scratch)
}

// whole reports whether kernels take all heads of a number of steps at a time, and how these lie.
func (m *members) whole(columns int) (t layers.Turns, y, x layers.Pitch, ok bool) {
	t = layers.Turns{Groups: m.heads, Heads: m.turns, Columns: columns}
	y, x = layers.Pitch{Step: m.y.Step, Group: m.y.Head, Head: m.yNext}, layers.Pitch{Step: m.x.Step, Group: m.x.Head, Head: m.xNext}
	if x.Group < x.Head {
		t.Groups, t.Heads = t.Heads, t.Groups
		y.Group, y.Head, x.Group, x.Head = y.Head, y.Group, x.Head, x.Group
	}
	return t, y, x, !m.x.Narrow() && m.turns > 0
}

// turnAll rotates the heads of a number of steps by the angles of t from a row on.
func (m *members) turnAll(t *angles, row, sequence, step, steps int) {
	from := angles{cos: t.cos[row*t.d2:], sin: t.sin[row*t.d2:], d2: t.d2, buf: t.buf}
	size, y, x, ok := m.whole(t.d2 / 2)
	if ok && !m.interleaved && m.d == t.d2 {
		size.Steps, size.Angles = steps, t.d2
		m.halves(&from, size, m.y.From(sequence, step), y, m.x.From(sequence, step), x)
		return
	}
	r := m.rotation
	for i := range m.turns {
		r.x, r.y = m.x.Shift(i*m.xNext), m.y.Shift(i*m.yNext)
		r.turn(&from, sequence, step, steps)
	}
}

// copy copies the heads of a number of steps.
func (m *members) copy(sequence, step, steps int) {
	if t, y, x, ok := m.whole(m.d); ok {
		t.Steps = steps
		layers.CopyHeads(t, m.y.From(sequence, step), y, m.x.From(sequence, step), x)
		return
	}
	for i := range m.turns {
		x, y := m.x.Shift(i*m.xNext), m.y.Shift(i*m.yNext)
		for s := step; s < step+steps; s++ {
			for h := range m.heads {
				y.Take(sequence, s, h, &x, sequence, s, h, m.d)
			}
		}
	}
}
