package projection

import "slices"

// recomputable lists the modules that Megatron can compute again one by one.
var recomputable = []string{"core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"}

// Activation is a tensor that a layer keeps for its backward pass, for one micro batch on one rank.
type Activation struct {
	Name    string  `json:"name"`
	Bytes   float64 `json:"bytes"`
	Formula string  `json:"formula"`

	modules []string // whose recomputation drops it
}

// activations builds the list of a layer. The names in formulas are those of [Plan.Symbols].
type activations struct {
	list []Activation
}

func (a *activations) add(name, formula string, bytes float64, modules ...string) {
	if bytes > 0 {
		a.list = append(a.list, Activation{name, bytes, formula, modules})
	}
}

// tokens is how many tokens of a micro batch a rank has; with sequence parallelism norms and
// residuals have only a part of them, local.
func (p *Plan) tokens() float64 {
	return float64(p.Model.Sequence) * float64(p.Parallel.MicroBatch) / float64(p.Parallel.Context)
}

func (p *Plan) local() float64 {
	if p.Parallel.Sequence {
		return p.tokens() / float64(p.Parallel.Tensor)
	}
	return p.tokens()
}

// saved is the bytes of an element that a linear layer keeps of its input.
func (p *Plan) saved() float64 {
	switch p.Precision.Compute {
	case "fp32":
		return 4
	case "fp8", "fp4":
		return 1
	}
	return 2
}

// element is the bytes of an element of any other activation.
func (p *Plan) element() float64 {
	if p.Precision.Compute == "fp32" {
		return 4
	}
	return 2
}

// Activations returns what a layer with or without experts keeps of one micro batch. Recomputation
// of single modules is taken into account, that of whole layers is not.
func (p *Plan) Activations(sparse bool) []Activation {
	var a activations
	p.attentionActivations(&a)
	if sparse {
		p.expertActivations(&a)
	} else {
		p.mlpActivations(&a)
	}
	return slices.DeleteFunc(a.list, func(item Activation) bool {
		return slices.ContainsFunc(item.modules, func(m string) bool { return slices.Contains(p.Recompute.Modules, m) })
	})
}

func (p *Plan) attentionActivations(a *activations) {
	m, t, l, tp := p.Model, p.tokens(), p.local(), float64(p.Parallel.Tensor)
	e, s, h := p.element(), p.saved(), float64(p.Model.Hidden)
	a.add("input of the first norm", "e · l · hidden", e*l*h)
	if m.Latent {
		a.add("input of the down projections", "s · l · hidden", s*l*h, "layernorm")
		if m.QueryRank > 0 {
			a.add("compressed Q and its norm", "(e + s) · l · q_lora_rank", (e+s)*l*float64(m.QueryRank))
		}
		a.add("compressed KV and its norm", "l · (e · (kv_lora_rank + qk_pos_emb_head_dim) + s · kv_lora_rank)", l*(e*float64(m.KVRank+m.RotaryDim)+s*float64(m.KVRank)))
		a.add("Q, K and V", "e · t · heads · (2 · (qk_head_dim + qk_pos_emb_head_dim) + v_head_dim) / tp", e*t*float64(2*m.queries()+m.values())/tp, "mla_up_proj")
	} else {
		a.add("input of the QKV projection", "s · l · hidden", s*l*h, "layernorm")
		a.add("Q, K and V", "e · t · (heads + 2·groups) · head_dim / tp", e*t*float64(m.queries()+2*m.keys())/tp)
		if m.qkNorm {
			a.add("input of the Q and K norms", "e · t · (heads + groups) · head_dim / tp", e*t*float64(m.queries()+m.keys())/tp)
		}
	}
	if p.unfusedScores {
		scores := t * float64(m.Sequence) * float64(m.Heads) / tp
		a.add("attention scores", "e · t · sequence · heads / tp", e*scores, "core_attn")
		if p.scoreDropout {
			a.add("scores after dropout, with its mask", "(e + 1) · t · sequence · heads / tp", (e+1)*scores, "core_attn")
		}
	} else {
		a.add("statistics of the softmax", "4 · t · heads / tp", 4*t*float64(m.Heads)/tp, "core_attn")
	}
	a.add("attention output", "e · t · values / tp", e*t*float64(m.values())/tp)
	if s < e {
		a.add("attention output in fp8", "s · t · values / tp", s*t*float64(m.values())/tp)
	}
	if p.dropout {
		a.add("mask of the dropout", "l · hidden", l*h)
	}
	a.add("input of the second norm", "e · l · hidden", e*l*h)
}

func (p *Plan) mlpActivations(a *activations) {
	m, t, l, tp := p.Model, p.tokens(), p.local(), float64(p.Parallel.Tensor)
	e, s, h, f := p.element(), p.saved(), float64(p.Model.Hidden), float64(p.Model.FFN)
	a.add("input of the MLP", "s · l · hidden", s*l*h, "layernorm", "mlp")
	a.add("input of the activation", "e · t · "+m.gate()+"ffn / tp", e*t*float64(m.inputs())*f/tp, "mlp")
	a.add("input of the MLP's second matrix", "s · t · ffn / tp", s*t*f/tp, "mlp")
	if p.dropout {
		a.add("mask of the second dropout", "l · hidden", l*h)
	}
	a.add("inner tensors of the adapters", "e · t · lora.dim · adapters", e*t*float64(m.AdapterRank)*float64(len(m.Adapted)))
}

func (p *Plan) expertActivations(a *activations) {
	m, t, l, tp := p.Model, p.tokens(), p.local(), float64(p.Parallel.Tensor)
	e, s, h, f := p.element(), p.saved(), float64(p.Model.Hidden), float64(p.Model.ExpertFFN)
	etp := float64(p.Parallel.ExpertTensor)
	routed := l * float64(m.TopK) * etp
	a.add("input of the router", "e · l · hidden", e*l*h, "layernorm")
	a.add("logits and probabilities of the router", "8 · l · experts", 8*l*float64(m.Experts), "moe")
	a.add("tokens of the experts", "s · l · topk · etp · hidden", s*routed*h, "moe")
	a.add("input of the experts' activation", "e · l · topk · etp · "+m.gate()+"expert_ffn / etp", e*routed*float64(m.inputs())*f/etp, "moe")
	a.add("input of the experts' second matrix", "s · l · topk · etp · expert_ffn / etp", s*routed*f/etp, "moe", "moe_act")
	if m.SharedFFN > 0 {
		shared := float64(m.SharedFFN)
		if s < e {
			a.add("input of the shared expert in fp8", "s · l · hidden", s*l*h, "moe", "shared_experts")
		}
		a.add("input of the shared expert's activation", "e · t · "+m.gate()+"shared_ffn / tp", e*t*float64(m.inputs())*shared/tp, "moe", "shared_experts")
		a.add("input of the shared expert's second matrix", "s · t · shared_ffn / tp", s*t*shared/tp, "moe", "shared_experts")
	}
	if p.dropout {
		a.add("mask of the second dropout", "l · hidden", l*h)
	}
}

func sumBytes(list []Activation) float64 {
	var bytes float64
	for _, a := range list {
		bytes += a.Bytes
	}
	return bytes
}

// layerInput is what is kept of a layer that is computed again.
func (p *Plan) layerInput() float64 {
	bytes := p.element() * p.local() * float64(p.Model.Hidden)
	if p.distributeSave && !p.Parallel.Sequence {
		bytes /= float64(p.Parallel.Tensor)
	}
	return bytes
}

// chunkActivations returns what a chunk keeps of one micro batch, and the most that recomputing
// needs beside it.
func (p *Plan) chunkActivations(c Chunk) (kept, working float64) {
	whole := func(layer int) float64 { return p.layerAt(layer).activation }
	group, inGroup := 0.0, 0
	for i, layer := range c.Layers {
		if !p.Recompute.recomputes(i, layer) {
			kept += whole(layer)
			continue
		}
		if p.Recompute.Method == "uniform" && p.Recompute.LayerIDs == nil {
			if inGroup == 0 {
				kept, group = kept+p.layerInput(), 0
			}
			group, inGroup = group+whole(layer), (inGroup+1)%p.Recompute.Layers
			working = max(working, group)
			continue
		}
		kept += p.layerInput()
		working = max(working, whole(layer))
	}
	last := p.Model.Layers - 1
	for depth := range c.MTP {
		projection := 3 * p.element() * p.local() * float64(p.Model.Hidden)
		if p.Recompute.recomputes(len(c.Layers)+depth, p.Model.Layers+depth) {
			kept += p.layerInput()
			working = max(working, whole(last)+projection)
		} else {
			kept += whole(last) + projection
		}
	}
	if c.Embedding && p.dropout {
		kept += p.local() * float64(p.Model.Hidden)
	}
	return kept, working
}

// lossBytes is what the output layer and the loss hold for one micro batch.
func (p *Plan) lossBytes() (bytes float64, formula string) {
	logits := p.tokens() * float64(p.Model.Vocabulary) / float64(p.Parallel.Tensor)
	inputs := 2 * p.element() * p.local() * float64(p.Model.Hidden)
	heads := float64(1 + p.Model.ExtraMTP)
	if p.fusedLoss {
		return heads * (inputs + p.element()*logits), "heads · (2 · e · l · hidden + e · t · vocabulary / tp)"
	}
	return heads * (inputs + (2*p.element()+4)*logits), "heads · (2 · e · l · hidden + (2 · e + 4) · t · vocabulary / tp): logits, their gradient, and the softmax in fp32"
}
