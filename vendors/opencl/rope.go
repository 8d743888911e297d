package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

//go:embed rope.cl
var ropeSource string

var ropeProgram = newProgram("rope", ropeSource, []string{"X"}, []string{"INTERLEAVED"})

const interleaved macroFlags = 1

// ropeImpls returns the impls of the family.
func ropeImpls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(rope.FusedRopeForward, func(e *opregistry.Exec, a rope.FusedRopeArgs) error { return rotate(e, a, 1) }, Storage),
		openclImpl(rope.FusedRopeBackward, func(e *opregistry.Exec, a rope.FusedRopeArgs) error { return rotate(e, a, -1) }, Storage),
	}
}

// ropeHeads are vectors by sequence, position in the sequence and head, at these distances.
type ropeHeads struct {
	*tensor.Tensor
	sequence, step, head int
}

// view requires a dense last axis.
func view(c *kernelCall, name string, t *tensor.Tensor, format attention.QKVFormat) ropeHeads {
	if !c.stored(name, t) {
		return ropeHeads{}
	}
	strides := t.Strides()
	last := len(strides) - 1
	if t.Shape()[last] > 1 && strides[last] != 1 {
		c.decline("strides %v of %s %v, this impl serves a dense last axis", strides, name, t.Shape())
	}
	h := ropeHeads{Tensor: t, step: strides[0], head: strides[last-1]}
	switch format {
	case attention.SBHD:
		h.sequence = strides[1]
	case attention.BSHD:
		h.sequence, h.step = strides[0], strides[1]
	}
	return h
}

func (h ropeHeads) addTo(l *kernelLaunch) {
	l.vec(h.Tensor).u64(uint64(h.sequence), uint64(h.step), uint64(h.head))
}

// rotate turns pairs by their angles times sign.
func rotate(e *opregistry.Exec, a rope.FusedRopeArgs, sign float32) error {
	c := begin(e)
	x, y := view(&c, "input", a.Input, a.QKVFormat), view(&c, "output", a.Output, a.QKVFormat)
	c.numbers("freqs", a.Freqs, tensor.F32)
	if a.CPSize > 1 {
		c.decline("cp_size %d, this impl serves whole sequences", a.CPSize)
	}
	flags := macroFlags(0)
	if a.Interleaved {
		flags = interleaved
	}
	if a.StartPositions != nil {
		c.numbers("start_positions", a.StartPositions, tensor.I32)
	}
	shape := a.Input.Shape()
	steps, sequences, bounds := shape[0], 1, 0
	switch a.QKVFormat {
	case attention.SBHD:
		sequences = shape[1]
	case attention.BSHD:
		sequences, steps = shape[0], shape[1]
	default:
		c.numbers("cu_seqlens", a.CuSeqlens, tensor.I32)
		bounds = a.CuSeqlens.NumElements() - 1
	}
	turned := a.Freqs.Shape().Cols()
	if c.Err != nil || a.Input.NumElements() == 0 {
		return c.Err
	}
	l := c.kernel(ropeProgram, "rope", typeList{a.Input.DType()}, flags)
	x.addTo(l)
	y.addTo(l)
	l.vec(a.Freqs, a.StartPositions).bool(a.StartPositions != nil).vec(a.CuSeqlens).u32(bounds).f32(sign)
	groups := sequences
	if a.StartPositions == nil && l.groupSize() == 1 {
		groups = 1 // which finds the angles of a step once
	}
	l.u32(sequences, shape[len(shape)-2], shape.Cols(), turned, a.Freqs.NumElements()/max(turned, 1))
	return l.runGroups(steps, groups)
}
