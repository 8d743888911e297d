package fp8

import (
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// Scales is the state of delayed scaling: a scale for each operand of some linear layers, and the
// largest magnitudes of the last steps. It belongs to one goroutine.
type Scales struct {
	groups    [2]group // of inputs and weights, and of gradients
	spare     *tensor.Tensor
	recording bool
}

// group holds the operands of one type.
type group struct {
	dtype   tensor.DType
	amax    *tensor.Tensor // f32 [n], of this step
	scale   *tensor.Tensor // f32 [n]
	history *tensor.Tensor // f32 [length, n], without this step
	params  Params
}

// Scale is the scale of one operand.
type Scale struct {
	of      *Scales
	value   *tensor.Tensor // f32 [1]
	largest *tensor.Tensor // f32 [1]
}

// NewScales returns scales of 1 for the operands of n layers, in memory that allocate returns, or
// nil unless scaling is delayed.
func (c Params) NewScales(n int, allocate func(d tensor.DType, shape ...int) *tensor.Tensor) *Scales {
	if !c.delayed() || n == 0 {
		return nil
	}
	s := &Scales{spare: allocate(tensor.F32, 1)}
	for i, of := range []Operand{Input, Gradient} {
		operands := n
		if of == Input {
			operands = 2 * n
		}
		s.groups[i] = group{
			dtype: c.DType(of), params: c,
			amax: allocate(tensor.F32, operands), scale: allocate(tensor.F32, operands), history: allocate(tensor.F32, max(c.HistoryLen, 1), operands),
		}
	}
	return s
}

// Operand returns the scale of an operand of layer i, nil without scales.
func (s *Scales) Operand(i int, operand Operand) *Scale {
	if s == nil {
		return nil
	}
	g := &s.groups[0]
	switch operand {
	case Weight:
		i += g.scale.NumElements() / 2
	case Gradient:
		g = &s.groups[1]
	}
	return &Scale{of: s, value: memory.Rows(g.scale, i, i+1), largest: memory.Rows(g.amax, i, i+1)}
}

// Record says whether magnitudes count from now on: those of a step that trains do.
func (s *Scales) Record(on bool) {
	if s != nil {
		s.recording = on
	}
}

// amax returns where the largest magnitude of the operand is kept.
func (s *Scale) amax() *tensor.Tensor {
	if s.of.recording {
		return s.largest
	}
	return s.of.spare
}

// Reset sets all scales to 1 and forgets the magnitudes.
func (s *Scales) Reset() {
	if s == nil {
		return
	}
	fill(s.spare, 0)
	for _, g := range s.groups {
		fill(g.amax, 0)
		fill(g.history, 0)
		fill(g.scale, 1)
	}
}

func fill(t *tensor.Tensor, v float64) {
	values := make([]float64, t.NumElements())
	for i := range values {
		values[i] = v
	}
	if err := t.SetFloat64s(values); err != nil {
		panic("BUG: fp8: " + err.Error())
	}
}

// Update computes the scales of the next step with the largest magnitudes of this one; reduce
// replaces them by those of all ranks, and run runs the op.
func (s *Scales) Update(reduce func(largest []float64) error, run func(quant.FusedAmaxAndScaleUpdateArgs) error) error {
	if s == nil {
		return nil
	}
	for _, g := range s.groups {
		largest := g.amax.Float64s()
		if err := reduce(largest); err != nil {
			return err
		}
		if err := g.amax.SetFloat64s(largest); err != nil {
			return err
		}
		if err := run(g.update()); err != nil {
			return err
		}
		fill(g.amax, 0)
	}
	return nil
}

func (g *group) update() quant.FusedAmaxAndScaleUpdateArgs {
	algo := quant.AmaxMostRecent
	if g.params.Algo == Max {
		algo = quant.AmaxMax
	}
	return quant.FusedAmaxAndScaleUpdateArgs{
		AmaxReductionBuffer: g.amax, AmaxHistories: []*tensor.Tensor{g.history}, Scales: []*tensor.Tensor{g.scale},
		AmaxComputeAlgo: algo, FP8DType: g.dtype, Margin: float32(g.params.Margin),
	}
}

// Tensors calls f with the name and the values of each part of the state, for checkpoints.
func (s *Scales) Tensors(f func(name string, t *tensor.Tensor)) {
	for i, name := range []string{"forward", "backward"} {
		f(name+".scale", s.groups[i].scale)
		f(name+".amax_history", s.groups[i].history)
	}
}
