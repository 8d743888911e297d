package model

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backends/native/block"
	"github.com/primus-fl/primus/runtime/backends/native/fp8"
	"github.com/primus-fl/primus/runtime/backends/native/memory"
	"github.com/primus-fl/primus/runtime/backends/native/param"
	"github.com/primus-fl/primus/tensor"
)

// copies gives each matrix a copy of the type of activations.
func (m *Model) copies() {
	d := m.cfg.Compute()
	if d == tensor.F32 {
		return
	}
	for _, p := range m.all() {
		if len(p.Shape) > 1 && !p.Wide {
			p.Round(m.memory.New(d, p.Shape...), m.cfg.Params.At(p.Depth-1, m.cfg.NumLayers))
		}
	}
}

// WeightsChanged makes following passes round the weights again. Who writes weights after the
// first pass calls it.
func (m *Model) WeightsChanged() {
	for i := range m.rounded {
		m.rounded[i] = false
	}
}

// roundWeights makes what rounds the weights to fp8.
func (p *Pass) roundWeights(mgr *opmanager.Manager) {
	p.eight = map[*param.Param]*fp8.Rounder{}
	data := map[int]*tensor.Tensor{} // by size, which weights share
	for _, w := range p.m.all() {
		if !w.Eight {
			continue
		}
		p.eight[w] = fp8.NewRounder(mgr.Phase(oppolicy.PhaseForward), tensor.F8E4M3, func(d tensor.DType, shape ...int) *tensor.Tensor {
			n := tensor.Shape(shape).NumElements()
			if d == tensor.F32 { // a scale
				return p.memory.New(d, n)
			}
			if data[n] == nil {
				data[n] = p.memory.New(d, n)
			}
			if data[n] == nil {
				return nil
			}
			return memory.Must(data[n].Reshape(shape...))
		}, w.Shape[0], w.Shape[1])
	}
}

// round fills the copies of the weights of a depth, unless they are those of the present weights.
func (p *Pass) round(r *block.Run, depth int) {
	if p.m.cfg.Compute() == tensor.F32 || p.m.rounded[depth] || r.Err != nil {
		return
	}
	var from, to []*tensor.Tensor
	for _, w := range p.m.all() {
		if w.Depth == depth && w.Rounded() != nil {
			from, to = append(from, w.Value), append(to, w.Rounded())
		}
	}
	if from != nil {
		p.rounder.All(r, from, to)
	}
	for _, w := range p.m.all() {
		if w.Depth == depth && w.Eight {
			block.Rounded(r, p.eight[w], w.Value, w.Rounded())
		}
	}
	p.m.rounded[depth] = r.Err == nil
}
