package projection

import (
	"fmt"
	"math"
)

// Model is the shape of a transformer.
type Model struct {
	Name           string `json:"name"`
	Layers         int    `json:"layers"`
	Hidden         int    `json:"hidden_size"`
	FFN            int    `json:"ffn_hidden_size"`
	Heads          int    `json:"attention_heads"`
	Groups         int    `json:"query_groups"`
	HeadDim        int    `json:"head_dim"`
	Sequence       int    `json:"sequence"`
	Window         int    `json:"window,omitempty"` // tokens that a token sees, itself included; 0 means all before it
	Vocabulary     int    `json:"vocabulary"`       // padded
	VocabularyFrom string `json:"vocabulary_from"`
	Tied           bool   `json:"tied_embeddings"`
	Gated          bool   `json:"gated_mlp"`

	Latent    bool `json:"multi_latent_attention"`
	QueryRank int  `json:"q_lora_rank,omitempty"` // 0 means a full projection
	KVRank    int  `json:"kv_lora_rank,omitempty"`
	RotaryDim int  `json:"qk_pos_emb_head_dim,omitempty"`
	ValueDim  int  `json:"v_head_dim,omitempty"`

	Experts   int `json:"experts,omitempty"`
	TopK      int `json:"experts_per_token,omitempty"`
	ExpertFFN int `json:"expert_ffn_hidden_size,omitempty"`
	SharedFFN int `json:"shared_expert_ffn_hidden_size,omitempty"`
	ExtraMTP  int `json:"mtp_layers,omitempty"`

	AdapterRank int      `json:"lora_dim,omitempty"` // 0 means that all weights are trained
	Adapted     []string `json:"lora_target_modules,omitempty"`

	sparse           []bool // layers with experts
	normWeights      int    // 1 for RMSNorm, 2 for LayerNorm
	bias, qkvBias    bool
	qkNorm           bool
	sharedGate       bool
	learnedPositions int
}

// foreign lists parameters whose models the formulas do not describe.
var foreign = []string{
	"spec", "lfm_layer_types", "experimental_attention_variant", "linear_attention_freq", "hybrid_override_pattern",
	"hybrid_attention_ratio", "heterogeneous_layers_config_path", "moe_latent_size", "routed_expert_hidden_size", "encoder_num_layers", "compress_ratios",
	"o_lora_rank",
}

func (r *reader) model(name string, vocabularyParts int) Model {
	if kind := r.text("model_type", "gpt"); kind != "gpt" {
		r.failAt("model_type", "want gpt: the formulas are those of a transformer")
	}
	for _, key := range foreign {
		if v, ok := r.lookup(key); ok {
			if n, number := v.Float64(); number && n == 0 {
				continue
			}
			r.failAt(key, "and the formulas do not describe such a model")
		}
	}
	m := Model{
		Name: name, Layers: r.required("num_layers"), Hidden: r.required("hidden_size"), Heads: r.required("num_attention_heads"),
		Sequence: r.required("seq_length"), ExtraMTP: r.count("mtp_num_layers"),
		Tied: !r.flag("untie_embeddings_and_output_weights"), Gated: r.flag("swiglu") || r.flag("quick_geglu"),
		Latent: r.flag("multi_latent_attention"), bias: r.flagOr("add_bias_linear", true), qkvBias: r.flag("add_qkv_bias"), qkNorm: r.flag("qk_layernorm"),
	}
	if m.Layers > maxLayers {
		r.failAt("num_layers", "want at most %d", maxLayers)
		m.Layers = 1
	}
	m.Window = r.window()
	m.HeadDim = r.size("kv_channels", max(m.Hidden/m.Heads, 1))
	m.FFN = r.size("ffn_hidden_size", 4*m.Hidden)
	m.Groups = m.Heads
	if r.flag("group_query_attention") {
		m.Groups = r.size("num_query_groups", m.Heads)
	}
	m.normWeights = 2
	if r.choice("normalization", "LayerNorm", "LayerNorm", "RMSNorm") == "RMSNorm" {
		m.normWeights = 1
	}
	if r.text("position_embedding_type", "learned_absolute") == "learned_absolute" {
		m.learnedPositions = r.size("max_position_embeddings", m.Sequence)
	}
	if m.Latent {
		m.QueryRank, m.KVRank = r.count("q_lora_rank"), r.size("kv_lora_rank", 32)
		m.HeadDim, m.RotaryDim, m.ValueDim = r.size("qk_head_dim", 128), r.count("qk_pos_emb_head_dim"), r.size("v_head_dim", 128)
	}
	r.experts(&m)
	r.adapters(&m)
	r.vocabulary(&m, vocabularyParts)
	return m
}

// window returns how many tokens a token sees, itself included; 0 means all before it.
func (r *reader) window() int {
	v, _ := r.lookup("window_size")
	_, some := r.lookup("window_attn_skip_freq")
	sizes, ok := v.List()
	if !ok || len(sizes) == 0 || some { // windows in some layers count as none
		return 0
	}
	if left, ok := sizes[0].Float64(); ok && left > 0 && left < maxSize {
		return int(left) + 1
	}
	return 0
}

func (r *reader) experts(m *Model) {
	m.sparse = make([]bool, m.Layers)
	if m.Experts = r.count("num_experts"); m.Experts == 0 {
		return
	}
	m.TopK, m.ExpertFFN = r.size("moe_router_topk", 2), r.size("moe_ffn_hidden_size", m.FFN)
	m.SharedFFN, m.sharedGate = r.count("moe_shared_expert_intermediate_size"), r.flag("moe_shared_expert_gate")
	m.sparse = r.moePattern(m.Layers)
	if m.TopK > m.Experts {
		r.failAt("moe_router_topk", "want at most num_experts %d", m.Experts)
	}
}

// vocabulary reads the size of the vocabulary, padded so that it can be cut into parts.
func (r *reader) vocabulary(m *Model, parts int) {
	if m.Vocabulary = r.count("padded_vocab_size"); m.Vocabulary > 0 {
		m.VocabularyFrom = "padded_vocab_size"
		return
	}
	size, from := r.count("vocab_size"), "vocab_size"
	if size == 0 {
		tokenizer := r.text("tokenizer_model", "")
		size, from = publishedVocabulary(tokenizer), "the published configuration of "+tokenizer
		if size == 0 {
			r.fail(fmt.Errorf("projection: the size of the vocabulary of tokenizer_model %q is not known: give vocab_size=N", tokenizer))
			size = 1
		}
	}
	unit := r.size("make_vocab_size_divisible_by", 128) * parts
	m.Vocabulary = (size + unit - 1) / unit * unit
	m.VocabularyFrom = fmt.Sprintf("%s: %d, padded to a multiple of %d", from, size, unit)
}

// split says how the weights of a matrix lie on devices.
type split int

const (
	replicated  split = iota // whole on every tensor-parallel rank
	tensorwise               // cut over tensor-parallel ranks
	expertwise               // cut over expert-parallel and expert-tensor-parallel ranks
	expertwhole              // cut over expert-parallel ranks
)

// Weight is a group of parameters of a layer.
type Weight struct {
	Name    string  `json:"name"`
	Count   float64 `json:"count"`
	Formula string  `json:"formula"`
	split   split
	use     use
	active  float64
	adapter bool
	module  string // whose recomputation computes the product with it again
}

// use says what is computed with weights.
type use int

const (
	vector  use = iota // no matrix product: norms, biases and embeddings
	product            // a matrix product in bf16
	linear             // a linear layer, which runs in fp8 where that is on
)

// in returns w as a part of a module that can be recomputed on its own.
func (w Weight) in(module string) Weight {
	w.module = module
	return w
}

func weight(name string, s split, u use, formula string, factors ...int) Weight {
	count := 1.0
	for _, f := range factors {
		count *= float64(f)
	}
	return Weight{Name: name, Count: count, Formula: formula, split: s, use: u, active: count}
}

// queries and keys are the widths of the projections of a layer.
func (m Model) queries() int { return m.Heads * (m.HeadDim + m.RotaryDim) }
func (m Model) keys() int    { return m.Groups * m.HeadDim }

// values is the width of the attention output.
func (m Model) values() int {
	if m.Latent {
		return m.Heads * m.ValueDim
	}
	return m.Heads * m.HeadDim
}

// inputs is how many matrices make the input of an MLP's activation.
func (m Model) inputs() int {
	if m.Gated {
		return 2
	}
	return 1
}

func (m Model) attentionWeights() []Weight {
	var w []Weight
	if m.Latent {
		if m.QueryRank > 0 {
			w = append(w,
				weight("Q down projection", replicated, linear, "hidden · q_lora_rank", m.Hidden, m.QueryRank),
				weight("Q norm", replicated, vector, "q_lora_rank", m.QueryRank, m.normWeights),
				weight("Q up projection", tensorwise, linear, "q_lora_rank · heads · (qk_head_dim + qk_pos_emb_head_dim)", m.QueryRank, m.queries()).in("mla_up_proj"))
		} else {
			w = append(w, weight("Q projection", tensorwise, linear, "hidden · heads · (qk_head_dim + qk_pos_emb_head_dim)", m.Hidden, m.queries()))
		}
		return append(w,
			weight("KV down projection", replicated, linear, "hidden · (kv_lora_rank + qk_pos_emb_head_dim)", m.Hidden, m.KVRank+m.RotaryDim),
			weight("KV norm", replicated, vector, "kv_lora_rank", m.KVRank, m.normWeights),
			weight("KV up projection", tensorwise, linear, "kv_lora_rank · heads · (qk_head_dim + v_head_dim)", m.KVRank, m.Heads, m.HeadDim+m.ValueDim).in("mla_up_proj"),
			weight("attention output", tensorwise, linear, "heads · v_head_dim · hidden", m.values(), m.Hidden))
	}
	w = append(w, weight("QKV projection", tensorwise, linear, "hidden · (heads + 2·groups) · head_dim", m.Hidden, m.queries()+2*m.keys()))
	if m.bias || m.qkvBias {
		w = append(w, weight("QKV bias", tensorwise, vector, "(heads + 2·groups) · head_dim", m.queries()+2*m.keys()))
	}
	if m.qkNorm {
		w = append(w, weight("Q and K norms", replicated, vector, "2 · head_dim", 2, m.HeadDim, m.normWeights))
	}
	w = append(w, weight("attention output", tensorwise, linear, "heads · head_dim · hidden", m.values(), m.Hidden))
	if m.bias {
		w = append(w, weight("attention output bias", replicated, vector, "hidden", m.Hidden))
	}
	return w
}

func (m Model) mlpWeights() []Weight {
	w := []Weight{
		weight("MLP input", tensorwise, linear, m.gate()+"hidden · ffn", m.inputs(), m.Hidden, m.FFN),
		weight("MLP output", tensorwise, linear, "ffn · hidden", m.FFN, m.Hidden),
	}
	if m.bias {
		w = append(w, weight("MLP input bias", tensorwise, vector, m.gate()+"ffn", m.inputs(), m.FFN), weight("MLP output bias", replicated, vector, "hidden", m.Hidden))
	}
	return w
}

func (m Model) gate() string {
	if m.Gated {
		return "2 · "
	}
	return ""
}

func (m Model) expertWeights() []Weight {
	w := []Weight{
		weight("router", replicated, product, "hidden · experts", m.Hidden, m.Experts),
		weight("experts' input", expertwise, linear, "experts · "+m.gate()+"hidden · expert_ffn", m.Experts, m.inputs(), m.Hidden, m.ExpertFFN),
		weight("experts' output", expertwise, linear, "experts · expert_ffn · hidden", m.Experts, m.ExpertFFN, m.Hidden),
	}
	if m.bias {
		w = append(w,
			weight("experts' input biases", expertwise, vector, "experts · "+m.gate()+"expert_ffn", m.Experts, m.inputs(), m.ExpertFFN),
			weight("experts' output biases", expertwhole, vector, "experts · hidden", m.Experts, m.Hidden))
	}
	for i := range w[1:] {
		w[i+1].active *= float64(m.TopK) / float64(m.Experts)
	}
	if m.SharedFFN > 0 {
		w = append(w,
			weight("shared expert's input", tensorwise, linear, m.gate()+"hidden · shared_ffn", m.inputs(), m.Hidden, m.SharedFFN).in("shared_experts"),
			weight("shared expert's output", tensorwise, linear, "shared_ffn · hidden", m.SharedFFN, m.Hidden).in("shared_experts"))
		if m.bias {
			w = append(w,
				weight("shared expert's input bias", tensorwise, vector, m.gate()+"shared_ffn", m.inputs(), m.SharedFFN),
				weight("shared expert's output bias", replicated, vector, "hidden", m.Hidden))
		}
		if m.sharedGate {
			w = append(w, weight("shared expert's gate", replicated, vector, "hidden", m.Hidden))
		}
	}
	return w
}

// layer returns the weights of a layer with or without experts.
func (m Model) layer(sparse bool) []Weight {
	w := append([]Weight{weight("layer norms", replicated, vector, "2 · hidden", 2, m.Hidden, m.normWeights)}, m.attentionWeights()...)
	if sparse {
		return append(w, m.expertWeights()...)
	}
	return append(append(w, m.mlpWeights()...), m.adapterWeights()...)
}

// adaptable are the linear layers that LoRA can adapt, with the widths of input and output.
func (m Model) adaptable() map[string][2]int {
	return map[string][2]int{
		"linear_qkv": {m.Hidden, m.queries() + 2*m.keys()}, "linear_proj": {m.values(), m.Hidden},
		"linear_fc1": {m.Hidden, m.inputs() * m.FFN}, "linear_fc2": {m.FFN, m.Hidden},
	}
}

// adapterWeights returns the two matrices of LoRA for every linear layer that is adapted.
func (m Model) adapterWeights() []Weight {
	var list []Weight
	for _, name := range m.Adapted {
		widths := m.adaptable()[name]
		w := weight("adapter of "+name, tensorwise, linear, "lora.dim · (width of input + width of output)", m.AdapterRank, widths[0]+widths[1])
		w.adapter = true
		list = append(list, w)
	}
	return list
}

// adapters reads what LoRA trains in place of the weights of the model.
func (r *reader) adapters(m *Model) {
	block, ok := r.params.Get("lora")
	params, isMap := block.Map()
	if !ok || !isMap {
		return
	}
	inner := &reader{params: params}
	if inner.flag("enabled") {
		m.AdapterRank = inner.size("dim", 32)
		for _, v := range inner.list("target_modules") {
			name, _ := v.Str()
			if _, ok := m.adaptable()[name]; !ok {
				inner.failAt("target_modules", "want some of linear_qkv, linear_proj, linear_fc1 and linear_fc2")
			}
			m.Adapted = append(m.Adapted, name)
		}
		if m.Adapted == nil {
			m.Adapted = []string{"linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"}
		}
		if m.Experts > 0 || m.Latent {
			inner.fail(fmt.Errorf("projection: lora.enabled is true, and the formulas describe adapters of dense models with grouped queries only"))
		}
	}
	r.errs = append(r.errs, inner.errs...)
}

// mtpLayer returns the weights of a layer that predicts a further token.
func (m Model) mtpLayer() []Weight {
	return append([]Weight{
		weight("MTP projection", tensorwise, linear, "2 · hidden · hidden", 2, m.Hidden, m.Hidden),
		weight("MTP norms", replicated, vector, "3 · hidden", 3, m.Hidden, m.normWeights),
	}, m.layer(m.sparse[m.Layers-1])...)
}

func (m Model) embedding() []Weight {
	w := []Weight{weight("word embeddings", tensorwise, vector, "vocabulary · hidden", m.Vocabulary, m.Hidden)}
	if m.learnedPositions > 0 {
		w = append(w, weight("position embeddings", replicated, vector, "positions · hidden", m.learnedPositions, m.Hidden))
	}
	return w
}

// head returns the weights after the layers. Tied embeddings are used again, and the last stage of
// a pipeline then has a copy of them.
func (m Model) head(copied bool) []Weight {
	w := []Weight{weight("final norm", replicated, vector, "hidden", m.Hidden, m.normWeights)}
	switch {
	case !m.Tied:
		w = append(w, weight("output layer", tensorwise, vector, "vocabulary · hidden", m.Vocabulary, m.Hidden))
	case copied:
		w = append(w, weight("copy of the word embeddings", tensorwise, vector, "vocabulary · hidden", m.Vocabulary, m.Hidden))
	}
	return w
}

// Group is a number of equal parts of a model.
type Group struct {
	Name    string   `json:"name"`
	Times   int      `json:"times"`
	Weights []Weight `json:"weights"`
}

// Names of the groups that have activations.
const (
	DenseLayer  = "layer with an MLP"
	SparseLayer = "layer with experts"
)

// Parameters returns the weights of the whole model, part by part.
func (m Model) Parameters() []Group {
	groups := []Group{{"embedding", 1, m.embedding()}}
	sparse := 0
	for _, s := range m.sparse {
		if s {
			sparse++
		}
	}
	if dense := m.Layers - sparse; dense > 0 {
		groups = append(groups, Group{DenseLayer, dense, m.layer(false)})
	}
	if sparse > 0 {
		groups = append(groups, Group{SparseLayer, sparse, m.layer(true)})
	}
	if m.ExtraMTP > 0 {
		groups = append(groups, Group{"layer of multi-token prediction", m.ExtraMTP, m.mtpLayer()})
	}
	return append(groups, Group{"head", 1, m.head(false)})
}

// Count returns the parameters of the model, and how many of them a token uses.
func (m Model) Count() (total, active float64) {
	for _, g := range m.Parameters() {
		for _, w := range g.Weights {
			total += float64(g.Times) * w.Count
			active += float64(g.Times) * w.active
		}
	}
	return total, math.Round(active)
}
