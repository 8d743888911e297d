package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// Param is one weight of the model with its gradient.
type Param struct {
	Name  string // "model.layers.0.mlp.down_proj.weight"; fused weights have names of their own
	Value *tensor.Tensor
	Grad  *tensor.Tensor
	Decay bool // whether weight decay applies
}

type layerWeights struct {
	inputNorm, qkv, out, postNorm, gateUp, down *Param
}

// Model holds the weights of a decoder and their gradients, in memory of a device
// backend.
type Model struct {
	cfg    Config
	memory *arena

	embedding *Param
	layers    []layerWeights
	finalNorm *Param
	head      *Param // the embedding when tied
	params    []*Param
}

// New allocates a model with zero weights. Close returns its memory.
func New(cfg Config, backend device.Backend) (*Model, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, memory: &arena{backend: backend}}
	h, f := cfg.HiddenSize, cfg.FFNHiddenSize
	m.embedding = m.param("model.embed_tokens.weight", true, cfg.VocabSize, h)
	for i := range cfg.NumLayers {
		at := fmt.Sprintf("model.layers.%d.", i)
		m.layers = append(m.layers, layerWeights{
			inputNorm: m.param(at+"input_layernorm.weight", false, h),
			qkv:       m.param(at+"self_attn.qkv_proj.weight", true, cfg.qkvRows(), h),
			out:       m.param(at+"self_attn.o_proj.weight", true, h, cfg.NumAttentionHeads*cfg.HeadDim()),
			postNorm:  m.param(at+"post_attention_layernorm.weight", false, h),
			gateUp:    m.param(at+"mlp.gate_up_proj.weight", true, 2*f, h),
			down:      m.param(at+"mlp.down_proj.weight", true, h, f),
		})
	}
	m.finalNorm = m.param("model.norm.weight", false, h)
	m.head = m.embedding
	if cfg.Untie {
		m.head = m.param("lm_head.weight", true, cfg.VocabSize, h)
	}
	if m.memory.err != nil {
		return nil, fmt.Errorf("allocate the weights: %w", m.memory.fail())
	}
	return m, nil
}

func (m *Model) param(name string, decay bool, shape ...int) *Param {
	p := &Param{Name: name, Value: m.memory.new(tensor.F32, shape...), Grad: m.memory.new(tensor.F32, shape...), Decay: decay}
	m.params = append(m.params, p)
	return p
}

// Config returns the parameters of the architecture.
func (m *Model) Config() Config { return m.cfg }

// Params returns every weight once, in a fixed order. The caller must not change
// the slice.
func (m *Model) Params() []*Param { return m.params }

// Close returns the memory of weights and gradients.
func (m *Model) Close() error { return m.memory.close() }

// Init fills the weights from a seed: norms with ones, matrices with normal
// numbers of standard deviation init_method_std, those that write into the
// residual stream divided by √(2·num_layers). The same seed gives the same bits
// everywhere.
func (m *Model) Init(seed uint64) {
	residual := m.cfg.InitMethodStd / math.Sqrt(2*float64(m.cfg.NumLayers))
	for _, p := range m.params {
		data := tensor.Data[float32](p.Value)
		if !p.Decay {
			for i := range data {
				data[i] = 1
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	fill := func(p *Param, std float64) {
		data := tensor.Data[float32](p.Value)
		for i := range data {
			data[i] = float32(rng.NormFloat64() * std)
		}
	}
	fill(m.embedding, m.cfg.InitMethodStd)
	for _, l := range m.layers {
		fill(l.qkv, m.cfg.InitMethodStd)
		fill(l.out, residual)
		fill(l.gateUp, m.cfg.InitMethodStd)
		fill(l.down, residual)
	}
	if m.cfg.Untie {
		fill(m.head, m.cfg.InitMethodStd)
	}
}

// Named is a tensor under its name in a checkpoint.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// Tensors returns views of the weights under the names that Hugging Face's Llama
// uses, in a fixed order.
func (m *Model) Tensors() []Named { return m.named(func(p *Param) *tensor.Tensor { return p.Value }) }

// Split returns views of tensors that stand beside the weights, such as an
// optimizer's moments, one for each of Params in their order, under the names and
// in the order of Tensors.
func (m *Model) Split(beside []*tensor.Tensor) []Named {
	of := make(map[*Param]*tensor.Tensor, len(beside))
	for i, p := range m.params {
		of[p] = beside[i]
	}
	return m.named(func(p *Param) *tensor.Tensor { return of[p] })
}

func (m *Model) named(of func(*Param) *tensor.Tensor) []Named {
	d, heads, groups, f := m.cfg.HeadDim(), m.cfg.NumAttentionHeads, m.cfg.Groups(), m.cfg.FFNHiddenSize
	named := []Named{{m.embedding.Name, of(m.embedding)}}
	for i, l := range m.layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		named = append(named,
			Named{l.inputNorm.Name, of(l.inputNorm)},
			Named{at + "self_attn.q_proj.weight", rows(of(l.qkv), 0, heads*d)},
			Named{at + "self_attn.k_proj.weight", rows(of(l.qkv), heads*d, (heads+groups)*d)},
			Named{at + "self_attn.v_proj.weight", rows(of(l.qkv), (heads+groups)*d, (heads+2*groups)*d)},
			Named{l.out.Name, of(l.out)},
			Named{l.postNorm.Name, of(l.postNorm)},
			Named{at + "mlp.gate_proj.weight", rows(of(l.gateUp), 0, f)},
			Named{at + "mlp.up_proj.weight", rows(of(l.gateUp), f, 2*f)},
			Named{l.down.Name, of(l.down)},
		)
	}
	named = append(named, Named{m.finalNorm.Name, of(m.finalNorm)})
	if m.cfg.Untie {
		named = append(named, Named{m.head.Name, of(m.head)})
	}
	return named
}

// HFConfig returns the content of a Hugging Face config.json for the weights.
func (m *Model) HFConfig() map[string]any {
	return map[string]any{
		"architectures":           []string{"LlamaForCausalLM"},
		"model_type":              "llama",
		"hidden_act":              "silu",
		"hidden_size":             m.cfg.HiddenSize,
		"intermediate_size":       m.cfg.FFNHiddenSize,
		"num_hidden_layers":       m.cfg.NumLayers,
		"num_attention_heads":     m.cfg.NumAttentionHeads,
		"num_key_value_heads":     m.cfg.Groups(),
		"head_dim":                m.cfg.HeadDim(),
		"max_position_embeddings": m.cfg.SeqLength,
		"vocab_size":              m.cfg.VocabSize,
		"rms_norm_eps":            m.cfg.NormEpsilon,
		"rope_theta":              m.cfg.RotaryBase,
		"attention_bias":          false,
		"mlp_bias":                false,
		"tie_word_embeddings":     !m.cfg.Untie,
		"initializer_range":       m.cfg.InitMethodStd,
		"torch_dtype":             "float32",
		"use_cache":               true,
	}
}
