package projection

import "slices"

// Work is the floating-point operations of the forward pass of a part of a model, for one token.
type Work struct {
	Part    string  `json:"part"`
	Times   int     `json:"times"`
	Linear  float64 `json:"linear_flops"`           // in matrices of linear layers, which run in fp8 where that is on
	Other   float64 `json:"other_flops"`            // in bf16
	Again   float64 `json:"recomputed_flops"`       // of both, those that the backward pass computes again
	Frozen  float64 `json:"frozen_flops,omitempty"` // of both, those of weights that get no gradient
	Formula string  `json:"formula"`
}

func (w Work) forward() float64 { return w.Linear + w.Other }

// core is the work of QKᵀ and of the product with V, half of which a causal mask leaves out. A
// window of w tokens leaves w − w²/(2·sequence) of the keys on average.
func (m Model) core() float64 {
	keys := float64(m.Sequence) / 2
	if w := float64(m.Window); w > 0 && m.Window < m.Sequence {
		keys = w - w*w/(2*float64(m.Sequence))
	}
	return 2 * keys * float64(m.queries()+m.values())
}

// coreFormula describes core.
func (m Model) coreFormula() string {
	if m.Window > 0 && m.Window < m.Sequence {
		return "2 · (window − window² / (2 · sequence)) · heads · (width of Q + width of V)"
	}
	return "sequence · heads · (width of Q + width of V), half of it by the causal mask"
}

// layerWork is the work of a layer with or without experts.
func (p *Plan) layerWork(sparse bool) Work {
	w := Work{Part: DenseLayer, Other: p.Model.core(), Formula: "2 · parameters of its matrices that a token uses + core attention: " + p.Model.coreFormula()}
	if sparse {
		w.Part = SparseLayer
	}
	recomputed := func(module string) bool { return slices.Contains(p.Recompute.Modules, module) }
	if recomputed("core_attn") {
		w.Again += p.Model.core()
	}
	for _, part := range []struct {
		module  string
		weights []Weight
	}{{"", p.Model.attentionWeights()}, {"", p.Model.adapterWeights()}, {p.feedForward(sparse), p.feedForwardWeights(sparse)}} {
		for _, x := range part.weights {
			flops := 2 * x.active
			switch x.use {
			case linear:
				w.Linear += flops
			case product:
				w.Other += flops
			default:
				continue
			}
			if recomputed(part.module) || recomputed(x.module) {
				w.Again += flops
			}
			if p.Model.AdapterRank > 0 && !x.adapter {
				w.Frozen += flops
			}
		}
	}
	return w
}

func (p *Plan) feedForward(sparse bool) string {
	if sparse {
		return "moe"
	}
	return "mlp"
}

func (p *Plan) feedForwardWeights(sparse bool) []Weight {
	if sparse {
		return p.Model.expertWeights()
	}
	return p.Model.mlpWeights()
}

// headWork is the work of the output layer.
func (p *Plan) headWork() Work {
	w := Work{Part: "output layer", Times: 1, Other: 2 * float64(p.Model.Hidden) * float64(p.Model.Vocabulary), Formula: "2 · hidden · vocabulary"}
	if p.Model.AdapterRank > 0 {
		w.Frozen = w.Other
	}
	return w
}

// mtpWork is the work of a layer of multi-token prediction, with its own output.
func (p *Plan) mtpWork() Work {
	w, head := p.layerWork(p.Model.sparse[p.Model.Layers-1]), p.headWork()
	h := float64(p.Model.Hidden)
	return Work{
		Part: "layer of multi-token prediction", Times: p.Model.ExtraMTP, Linear: w.Linear + 4*h*h, Other: w.Other + head.Other, Again: w.Again,
		Formula: "a layer + 4 · hidden · hidden + output layer",
	}
}

// chunkWork is the work of a chunk of a pipeline rank, for one token.
func (p *Plan) chunkWork(c Chunk) Work {
	var sum Work
	add := func(w Work, again bool) {
		sum.Linear += w.Linear
		sum.Other += w.Other
		sum.Frozen += w.Frozen
		if again {
			w.Again = w.forward()
		}
		sum.Again += w.Again
	}
	for i, layer := range c.Layers {
		add(p.layerAt(layer).work, p.Recompute.recomputes(i, layer))
	}
	for depth := range c.MTP {
		w := p.mtpWork()
		head := p.headWork().Other
		w.Other -= head
		add(w, p.Recompute.recomputes(len(c.Layers)+depth, p.Model.Layers+depth))
		sum.Other += head
	}
	if c.Loss {
		add(p.headWork(), false)
	}
	return sum
}

// Work returns the work of the parts of the model, each with how often the model has it.
func (p *Plan) Work() []Work {
	var list []Work
	for _, g := range p.Model.Parameters() {
		switch g.Name {
		case DenseLayer, SparseLayer:
			w := p.layerWork(g.Name == SparseLayer)
			w.Times = g.Times
			list = append(list, w)
		}
	}
	if p.Model.ExtraMTP > 0 {
		list = append(list, p.mtpWork())
	}
	return append(list, p.headWork())
}
