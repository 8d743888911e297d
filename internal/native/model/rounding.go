package model

import (
	"github.com/primus-fl/primus/internal/native/fp8"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// stored returns the type of the values of a weight. They are f32, but the matrices of a model that
// is not trained have the type of activations, unless their values are rounded to fp8.
func (m *Model) stored(p *Param) tensor.DType {
	if !m.frozen || m.cfg.Format != "" || !rounds(p) {
		return tensor.F32
	}
	return m.cfg.Compute()
}

// rounds reports whether layers multiply with a weight in the type of activations.
func rounds(p *Param) bool { return len(p.Shape) > 1 && !p.Wide }

// copies gives each f32 matrix a copy of the type of activations, if that is another one.
func (m *Model) copies() {
	d := m.cfg.Compute()
	if d == tensor.F32 {
		return
	}
	eights := 0
	for _, p := range m.all() {
		if !rounds(p) || m.stored(p) != tensor.F32 {
			continue
		}
		to := m.memory.New(d, p.Shape...)
		if !p.OfLayer() || !m.cfg.Params.At(p.Depth-1, m.cfg.NumLayers) {
			p.Round(to)
			continue
		}
		var across *tensor.Tensor
		if m.cfg.Params.Sided() {
			across = m.memory.New(d, p.Shape...)
		}
		p.RoundToFP8(to, across)
		eights++
	}
	m.scales = m.cfg.Params.NewScales(eights, m.memory.New)
}

// WeightsChanged makes following passes round the weights again. Who writes weights after the
// first pass calls it.
func (m *Model) WeightsChanged() {
	for i := range m.rounded {
		m.rounded[i] = false
	}
}

// rounder fills the copies of weights.
type rounder struct {
	m     *Model
	cast  *Caster
	eight map[*Param]*fp8.Rounder // of weights in fp8
}

// rounder makes what fills the copies.
func (m *Model) rounder(mgr *opmanager.Manager, b *Builder, a *memory.Arena) *rounder {
	x := &rounder{m, b.Caster(mgr), map[*Param]*fp8.Rounder{}}
	data := map[int]*tensor.Tensor{} // by size, which weights share
	next := 0
	for _, w := range m.all() {
		if !w.Eight {
			continue
		}
		x.eight[w] = m.cfg.Params.NewRounder(mgr.Phase(oppolicy.PhaseForward), fp8.Weight, m.scales.Operand(next, fp8.Weight), func(d tensor.DType, shape ...int) *tensor.Tensor {
			n := tensor.Shape(shape).NumElements()
			if d != tensor.F8E4M3 { // scales
				return a.New(d, shape...)
			}
			if data[n] == nil {
				data[n] = a.New(d, n)
			}
			if data[n] == nil {
				return nil
			}
			return memory.Must(data[n].Reshape(shape...))
		}, w.Shape[0], w.Shape[1])
		next++
	}
	return x
}

// round fills the copies of the weights of a depth, unless they are those of the present weights.
func (x *rounder) round(r *Run, depth int) {
	m := x.m
	if m.cfg.Compute() == tensor.F32 || m.rounded[depth] || r.Err != nil {
		return
	}
	var from, to []*tensor.Tensor
	for _, w := range m.all() {
		if to16, _ := w.Rounded(); w.Depth == depth && to16 != nil && !w.Eight {
			from, to = append(from, w.Value), append(to, to16)
		}
	}
	if from != nil {
		x.cast.All(r, from, to)
	}
	for _, w := range m.all() {
		if w.Depth != depth || !w.Eight {
			continue
		}
		rows, columns := w.Rounded()
		Rounded(r, x.eight[w], w.Value, rows, false)
		if columns != rows {
			Rounded(r, x.eight[w], w.Value, columns, true)
		}
	}
	m.rounded[depth] = r.Err == nil
}

// RecordScales says whether what is rounded to fp8 from now on counts for delayed scales: in a step
// that trains it does.
func (m *Model) RecordScales(on bool) {
	m.scales.Record(on)
	if on && m.scales != nil { // other passes may have rounded the weights
		m.WeightsChanged()
	}
}

// UpdateScales computes the delayed scales of the next step, after the last pass of a step. reduce
// replaces magnitudes by the largest of all ranks.
func (p *Pass) UpdateScales(reduce func(largest []float64) error) error {
	r := p.run()
	r.Leave("scales of fp8")
	return p.m.scales.Update(reduce, func(a quant.FusedAmaxAndScaleUpdateArgs) error {
		Call(r, p.updateScales, a)
		return r.Err
	})
}

// Scales returns the state of delayed scaling under the names in a checkpoint, nil without.
func (m *Model) Scales() []Named {
	if m.scales == nil {
		return nil
	}
	var all []Named
	m.scales.Tensors(func(name string, t *tensor.Tensor) { all = append(all, Named{Name: name, Tensor: t}) })
	return all
}
