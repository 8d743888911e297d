package model

import "slices"

// family determines the names and the layout of a checkpoint.
type family uint8

const (
	familyLlama family = iota
	familyGPT2
	familyMixtral
	familyMistral
	familyQwen2
	familyQwen3
	familyOwn // a mixture of traits that Hugging Face has no class for; the names are Llama's and Mixtral's
)

// family returns the family of Hugging Face models that can load the weights.
func (c Config) family() family {
	llama := c.rotary() && c.gated() && !c.layerNorm()
	windowed := c.window() >= 0
	switch {
	case llama && c.mixture() && !c.QKNorm && !c.qkvBias():
		return familyMixtral
	case llama && !c.mixture():
		return c.llamaFamily(windowed)
	case c.layerNorm() && c.learnedPositions() && c.Activation == GELU && c.AddBiasLinear && c.Groups() == c.NumAttentionHeads &&
		!c.QKNorm && !windowed && c.HeadDim()*c.NumAttentionHeads == c.HiddenSize:
		return familyGPT2
	default:
		return familyOwn
	}
}

// llamaFamily tells apart the families that differ from Llama in attention only.
func (c Config) llamaFamily(windowed bool) family {
	switch {
	case c.QKNorm && !c.qkvBias():
		return familyQwen3
	case c.QKNorm:
		return familyOwn
	case c.AddQKVBias && !c.AddBiasLinear:
		return familyQwen2
	case !windowed:
		return familyLlama
	case !c.AddBiasLinear:
		return familyMistral
	default:
		return familyOwn
	}
}

// names are the names of the weights, without ".weight" and ".bias".
type names struct {
	embedding, positions, layers, finalNorm, head string
	inputNorm, postNorm                           string
	attention, qkv, q, k, v, qNorm, kNorm, out    string
	mlp, gateUp, gate, up, down                   string
	router, experts, expertsUp, expertsDown       string // all experts in one
	expertGate, expertUp, expertDown              string // one of them
}

var gpt2Names = names{
	embedding: "transformer.wte", positions: "transformer.wpe", layers: "transformer.h.", finalNorm: "transformer.ln_f", head: "lm_head",
	inputNorm: "ln_1", attention: "attn.", qkv: "c_attn", out: "c_proj", postNorm: "ln_2",
	mlp: "mlp.", up: "c_fc", down: "c_proj",
}

var llamaNames = names{
	embedding: "model.embed_tokens", positions: "model.embed_positions", layers: "model.layers.", finalNorm: "model.norm", head: "lm_head",
	inputNorm: "input_layernorm", attention: "self_attn.", qkv: "qkv_proj", q: "q_proj", k: "k_proj", v: "v_proj", qNorm: "q_norm", kNorm: "k_norm", out: "o_proj",
	postNorm: "post_attention_layernorm",
	mlp:      "mlp.", gateUp: "gate_up_proj", gate: "gate_proj", up: "up_proj", down: "down_proj",
	router: "block_sparse_moe.gate", experts: "block_sparse_moe.experts.", expertsUp: "w1_w3", expertsDown: "w2",
	expertGate: "w1", expertUp: "w3", expertDown: "w2",
}

// HFConfig returns the content of a Hugging Face config.json for the weights. It sets every key
// whose default in Hugging Face's classes would be wrong, such as those of special tokens, which do
// not exist here.
func (c Config) HFConfig() map[string]any {
	common := map[string]any{
		"vocab_size":          c.VocabSize,
		"tie_word_embeddings": !c.Untie,
		"initializer_range":   c.InitMethodStd,
		"torch_dtype":         "float32",
		"use_cache":           true,

		// Without these keys, loaders take a byte for the end of a text.
		"bos_token_id": nil, "eos_token_id": nil, "pad_token_id": nil,
	}
	add := func(more map[string]any) {
		for key, v := range more {
			common[key] = v
		}
	}
	class, kind := c.class()
	add(map[string]any{"architectures": []string{class}, "model_type": kind})
	if c.family() == familyGPT2 {
		add(map[string]any{
			"activation_function": "gelu_new",
			"n_embd":              c.HiddenSize,
			"n_inner":             c.FFNHiddenSize,
			"n_layer":             c.NumLayers,
			"n_head":              c.NumAttentionHeads,
			"n_positions":         c.positions(),
			"layer_norm_epsilon":  c.NormEpsilon,
			"embd_pdrop":          c.HiddenDropout,
			"resid_pdrop":         c.HiddenDropout,
			"attn_pdrop":          c.AttentionDropout,
		})
		return common
	}
	add(map[string]any{
		"hidden_act":              "silu",
		"hidden_size":             c.HiddenSize,
		"intermediate_size":       c.FFNHiddenSize,
		"num_hidden_layers":       c.NumLayers,
		"num_attention_heads":     c.NumAttentionHeads,
		"num_key_value_heads":     c.Groups(),
		"head_dim":                c.HeadDim(),
		"max_position_embeddings": c.positions(),
		"rms_norm_eps":            c.NormEpsilon,
		"rope_theta":              c.RotaryBase,
		"attention_dropout":       c.AttentionDropout,
	})
	if c.RopeScaling.interpolated() {
		common["rope_scaling"] = map[string]any{"rope_type": "linear", "factor": c.Interpolation}
	}
	if c.UseScaling {
		s := c.RopeScaling.resolved()
		common["rope_scaling"] = map[string]any{
			"rope_type": "llama3", "factor": s.ScalingFactor, "low_freq_factor": s.LowFreq, "high_freq_factor": s.HighFreq,
			"original_max_position_embeddings": s.OldContext,
		}
	}
	if w := c.window(); w >= 0 {
		common["sliding_window"] = w + 1
	}
	if c.mixture() {
		add(map[string]any{
			"intermediate_size":    c.expertSize(),
			"num_local_experts":    c.NumExperts,
			"num_experts_per_tok":  c.topk(),
			"router_aux_loss_coef": c.AuxLossCoeff,
		})
	}
	switch c.family() {
	case familyLlama:
		add(map[string]any{"attention_bias": c.AddBiasLinear, "mlp_bias": c.AddBiasLinear})
	case familyQwen2, familyQwen3:
		add(c.layerWindows())
	case familyMixtral:
		if c.window() < 0 {
			common["sliding_window"] = nil
		}
	case familyOwn:
		add(map[string]any{
			"normalization":           string(c.Normalization),
			"position_embedding_type": string(c.PositionEmbedding),
			"activation_func":         string(c.Activation),
			"attention_bias":          c.AddBiasLinear,
			"mlp_bias":                c.AddBiasLinear,
			"add_qkv_bias":            c.AddQKVBias,
			"qk_layernorm":            c.QKNorm,
		})
	}
	return common
}

// class returns the class in transformers that can load the weights, and its model_type.
func (c Config) class() (class, kind string) {
	switch c.family() {
	case familyLlama:
		return "LlamaForCausalLM", "llama"
	case familyMixtral:
		return "MixtralForCausalLM", "mixtral"
	case familyMistral:
		return "MistralForCausalLM", "mistral"
	case familyQwen2:
		return "Qwen2ForCausalLM", "qwen2"
	case familyQwen3:
		return "Qwen3ForCausalLM", "qwen3"
	case familyGPT2:
		return "GPT2LMHeadModel", "gpt2"
	default:
		return "PrimusForCausalLM", "primus"
	}
}

// layerWindows returns the keys with which the classes of Qwen say that every layer has the window,
// or none.
func (c Config) layerWindows() map[string]any {
	kind, first := "full_attention", c.NumLayers
	if c.window() >= 0 {
		kind, first = "sliding_attention", 0
	}
	return map[string]any{
		"use_sliding_window": c.window() >= 0, "max_window_layers": first, "layer_types": slices.Repeat([]string{kind}, c.NumLayers),
		"attention_bias": c.AddQKVBias,
	}
}
