package architecture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/primus-fl/primus/tensor"
)

// family determines the names and the layout of a checkpoint.
type family uint8

const (
	familyLlama family = iota
	familyGPT2
	familyMixtral
	familyMistral
	familyQwen2
	familyQwen3
	familyQwen3MoE
	familyOLMo2
	familyGemma2
	familyGemma3
	familyOwn // a mixture of traits that Hugging Face has no class for; the names are Llama's and Mixtral's
)

// family returns the family of Hugging Face models that can load the weights.
func (c Config) family() family {
	llama := c.Rotary() && c.Gated() && !c.HasLayerNorm()
	windowed := c.KeysBefore() >= 0
	switch {
	case c.gemma() && c.QKNorm && c.LocalBase != 0 && c.AttnSoftcap == 0:
		return familyGemma3
	case c.gemma() && !c.QKNorm && c.LocalBase == 0:
		return familyGemma2
	case c.AttnSoftcap != 0 || c.FinalSoftcap != 0 || c.ZeroCentered || c.EmbeddingMultiplier != 0 || c.QueryScalar != 0 || c.LocalBase != 0:
		return familyOwn
	case c.QKNormWhole || c.HasPostNorms():
		if llama && !c.Mixture() && c.QKNormWhole && !c.HasPreNorms() && c.HasQKVBias() == c.HasOutputBias() && !c.HasMLPBias() && !windowed {
			return familyOLMo2
		}
		return familyOwn
	case llama && c.Mixture() && !c.QKNorm && !c.HasQKVBias() && !c.PreSoftmax && c.WindowLayers == nil:
		return familyMixtral
	case llama && c.Mixture() && c.QKNorm && c.HasQKVBias() == c.HasOutputBias() && !windowed:
		return familyQwen3MoE
	case llama && !c.Mixture():
		return c.llamaFamily(windowed)
	case c.HasLayerNorm() && c.LearnedPositions() && !c.Gated() && c.HasOutputBias() && c.HasMLPBias() && c.Groups() == c.NumAttentionHeads &&
		!c.QKNorm && !windowed && c.HeadDim()*c.NumAttentionHeads == c.HiddenSize:
		return familyGPT2
	default:
		return familyOwn
	}
}

// gemma reports whether the model has what those of Gemma 2 and 3 have in transformers.
func (c Config) gemma() bool {
	scaled := c.PositionEmbedding != "" && c.PositionEmbedding != Rope || c.UseScaling
	return (c.Activation == GeGLU || c.Activation == GeGLUErf) && !c.HasLayerNorm() && c.NormPlacement == BothNorm && c.ZeroCentered && !c.QKNormWhole && !c.Mixture() &&
		c.HasQKVBias() == c.HasOutputBias() && !c.HasMLPBias() && c.QueryScalar != 0 && c.KeysBefore() >= 0 && !scaled &&
		c.EmbeddingMultiplier == GemmaMultiplier(c.HiddenSize)
}

// GemmaMultiplier returns what Gemma multiplies the vectors of tokens with.
func GemmaMultiplier(hidden int) float64 { return math.Sqrt(float64(hidden)) }

// llamaFamily tells apart the families that differ from Llama in attention only.
func (c Config) llamaFamily(windowed bool) family {
	switch {
	case c.QKNorm && c.HasQKVBias() == c.HasOutputBias() && !c.HasMLPBias():
		return familyQwen3
	case c.QKNorm:
		return familyOwn
	case c.HasQKVBias() && !c.HasOutputBias():
		if c.HasMLPBias() {
			return familyOwn
		}
		return familyQwen2
	case c.WindowLayers != nil:
		return familyOwn
	case !windowed:
		return familyLlama
	case !c.HasQKVBias() && !c.HasMLPBias():
		return familyMistral
	default:
		return familyOwn
	}
}

// Names are the names of the weights, without ".weight" and ".bias".
type Names struct {
	Embedding, Positions, Layers, FinalNorm, Head string
	InputNorm, PostNorm                           string // of the inputs of attention and MLP
	AttentionNorm, MLPNorm                        string // of their outputs
	Attention, QKV, Q, K, V, QNorm, KNorm, Out    string
	MLP, GateUp, Gate, Up, Down                   string
	Router, Experts, ExpertsUp, ExpertsDown       string // all experts in one
	ExpertGate, ExpertUp, ExpertDown              string // one of them
}

// Names returns the names of the weights, and whether checkpoints have matrices as [in out].
func (c Config) Names() (n Names, inOut bool) {
	switch c.family() {
	case familyGPT2:
		return gpt2Names, true
	case familyQwen3MoE:
		return qwen3MoENames, false
	default:
		if c.HasPostNorms() {
			return postNormNames, false
		}
		return llamaNames, false
	}
}

var gpt2Names = Names{
	Embedding: "transformer.wte", Positions: "transformer.wpe", Layers: "transformer.h.", FinalNorm: "transformer.ln_f", Head: "lm_head",
	InputNorm: "ln_1", Attention: "attn.", QKV: "c_attn", Out: "c_proj", PostNorm: "ln_2",
	MLP: "mlp.", Up: "c_fc", Down: "c_proj",
}

var llamaNames = Names{
	Embedding: "model.embed_tokens", Positions: "model.embed_positions", Layers: "model.layers.", FinalNorm: "model.norm", Head: "lm_head",
	InputNorm: "input_layernorm", Attention: "self_attn.", QKV: "qkv_proj", Q: "q_proj", K: "k_proj", V: "v_proj", QNorm: "q_norm", KNorm: "k_norm", Out: "o_proj",
	PostNorm: "post_attention_layernorm",
	MLP:      "mlp.", GateUp: "gate_up_proj", Gate: "gate_proj", Up: "up_proj", Down: "down_proj",
	Router: "block_sparse_moe.gate", Experts: "block_sparse_moe.experts.", ExpertsUp: "w1_w3", ExpertsDown: "w2",
	ExpertGate: "w1", ExpertUp: "w3", ExpertDown: "w2",
}

var postNormNames = func() Names {
	n := llamaNames
	n.PostNorm, n.AttentionNorm, n.MLPNorm = "pre_feedforward_layernorm", "post_attention_layernorm", "post_feedforward_layernorm"
	return n
}()

var qwen3MoENames = func() Names {
	n := llamaNames
	n.Router, n.Experts, n.ExpertsUp, n.ExpertsDown = "mlp.gate", "mlp.experts.", "gate_up_proj", "down_proj"
	n.ExpertGate, n.ExpertUp, n.ExpertDown = "gate_proj", "up_proj", "down_proj"
	return n
}()

// HFDType returns the name of f32, bf16 or f16 in a config.json, "" for other types.
func HFDType(d tensor.DType) string {
	switch d {
	case tensor.F32:
		return "float32"
	case tensor.BF16:
		return "bfloat16"
	case tensor.F16:
		return "float16"
	case tensor.Unspecified, tensor.F64, tensor.F8E4M3, tensor.F8E5M2, tensor.I64, tensor.I32, tensor.I16, tensor.U8, tensor.Bool:
		return ""
	default:
		panic("BUG: architecture: name of " + d.String())
	}
}

// HFConfig returns the content of a Hugging Face config.json for the weights. It sets every key
// whose default in Hugging Face's classes would be wrong, such as those of special tokens, which do
// not exist here.
func (c Config) HFConfig() map[string]any {
	all := withPoints(c.hfConfig())
	if s := c.QueryScalar; s != 0 && s == math.Trunc(s) && c.family() != familyOwn {
		all["query_pre_attn_scalar"] = int(s) // whole in Hugging Face's classes
	}
	return all
}

// decimal is a number whose JSON has a decimal point or an exponent, without which Hugging Face's
// classes refuse it.
type decimal float64

// MarshalJSON implements json.Marshaler.
func (d decimal) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(float64(d))
	if err == nil && !bytes.ContainsAny(text, ".e") {
		text = append(text, ".0"...)
	}
	return text, err
}

// withPoints makes decimals of the floating-point numbers of an object.
func withPoints(object map[string]any) map[string]any {
	for key, v := range object {
		switch v := v.(type) {
		case float64:
			object[key] = decimal(v)
		case map[string]any:
			withPoints(v)
		}
	}
	return object
}

func (c Config) hfConfig() map[string]any {
	common := map[string]any{
		"vocab_size":          c.VocabSize,
		"tie_word_embeddings": !c.Untie,
		"initializer_range":   c.InitMethodStd,
		"torch_dtype":         HFDType(c.Compute()),
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
			"activation_function": c.hiddenAct(),
			"n_embd":              c.HiddenSize,
			"n_inner":             c.FFNHiddenSize,
			"n_layer":             c.NumLayers,
			"n_head":              c.NumAttentionHeads,
			"n_positions":         c.Positions(),
			"layer_norm_epsilon":  c.NormEpsilon,
			"embd_pdrop":          c.HiddenDropout,
			"resid_pdrop":         c.HiddenDropout,
			"attn_pdrop":          c.AttentionDropout,
		})
		return common
	}
	add(map[string]any{
		"hidden_act":              c.hiddenAct(),
		"hidden_size":             c.HiddenSize,
		"intermediate_size":       c.FFNHiddenSize,
		"num_hidden_layers":       c.NumLayers,
		"num_attention_heads":     c.NumAttentionHeads,
		"num_key_value_heads":     c.Groups(),
		"head_dim":                c.HeadDim(),
		"max_position_embeddings": c.Positions(),
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
	switch c.PositionEmbedding {
	case YaRN:
		common["rope_scaling"] = c.Yarn.hf()
	case DynamicRope:
		common["rope_scaling"] = map[string]any{"rope_type": "dynamic", "factor": c.RopeScaling.resolved().ScalingFactor}
	case LongRope:
		common["rope_scaling"] = c.longRopeHF()
		common["original_max_position_embeddings"] = c.RopeScaling.resolved().OldContext
	case "", Rope, LearnedAbsolute:
	}
	if w := c.KeysBefore(); w >= 0 {
		common["sliding_window"] = w + 1
	}
	if c.Mixture() {
		add(map[string]any{"num_experts_per_tok": c.Topk(), "router_aux_loss_coef": c.AuxLossCoeff})
		if c.family() != familyQwen3MoE {
			add(map[string]any{"intermediate_size": c.ExpertSize(), "num_local_experts": c.NumExperts})
		}
	}
	switch c.family() {
	case familyQwen3MoE:
		add(map[string]any{
			"num_experts": c.NumExperts, "moe_intermediate_size": c.ExpertSize(), "norm_topk_prob": !c.PreSoftmax,
			"decoder_sparse_step": 1, "mlp_only_layers": []int{}, "attention_bias": c.HasOutputBias(), "use_sliding_window": false, "sliding_window": nil,
		})
	case familyLlama:
		add(map[string]any{"attention_bias": c.HasOutputBias(), "mlp_bias": c.HasMLPBias()})
	case familyOLMo2:
		common["attention_bias"] = c.HasOutputBias()
	case familyGemma2, familyGemma3:
		delete(common, "hidden_act")
		add(map[string]any{
			"hidden_activation": c.hiddenAct(), "attention_bias": c.HasOutputBias(), "layer_types": c.layerTypes(),
			"query_pre_attn_scalar": c.QueryScalar, "attn_logit_softcapping": orNil(c.AttnSoftcap), "final_logit_softcapping": orNil(c.FinalSoftcap),
		})
		if c.family() == familyGemma3 {
			common["rope_local_base_freq"] = c.LocalBase
		}
	case familyQwen2, familyQwen3:
		add(c.layerWindows())
	case familyMixtral:
		if c.KeysBefore() < 0 {
			common["sliding_window"] = nil
		}
	case familyOwn:
		add(map[string]any{
			"normalization":           string(c.Normalization),
			"position_embedding_type": string(c.PositionEmbedding),
			"activation_func":         string(c.Activation),
			"attention_bias":          c.HasOutputBias(),
			"mlp_bias":                c.HasMLPBias(),
			"add_qkv_bias":            c.AddQKVBias,
			"qk_layernorm":            c.QKNorm,
		})
		if c.WindowLayers != nil {
			common["layer_types"] = c.layerTypes()
		}
		if c.HasPostNorms() {
			common["norm_placement"] = string(c.NormPlacement)
		}
		if c.ZeroCentered {
			common["layernorm_zero_centered_gamma"] = true
		}
		for key, v := range map[string]float64{
			"embedding_multiplier": c.EmbeddingMultiplier, "query_pre_attn_scalar": c.QueryScalar, "rope_local_base_freq": c.LocalBase,
			"attn_logit_softcapping": c.AttnSoftcap, "final_logit_softcapping": c.FinalSoftcap,
		} {
			if v != 0 {
				common[key] = v
			}
		}
		if c.QKNormWhole {
			common["qk_layernorm_whole"] = true
		}
		if c.PreSoftmax {
			common["moe_router_pre_softmax"] = true
		}
	}
	return common
}

// orNil returns a number, nil for 0.
func orNil(v float64) any {
	if v == 0 {
		return nil
	}
	return v
}

// hiddenAct returns the name of the activation in transformers. Without a class there, the key does
// not decide.
func (c Config) hiddenAct() string {
	switch cmp.Or(c.Activation, SwiGLU) {
	case GELUErf, GeGLUErf:
		return "gelu"
	case GELU:
		return "gelu_new"
	case GeGLU:
		return "gelu_pytorch_tanh"
	default:
		return "silu"
	}
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
	case familyQwen3MoE:
		return "Qwen3MoeForCausalLM", "qwen3_moe"
	case familyOLMo2:
		return "Olmo2ForCausalLM", "olmo2"
	case familyGemma2:
		return "Gemma2ForCausalLM", "gemma2"
	case familyGemma3:
		return "Gemma3ForCausalLM", "gemma3_text"
	case familyGPT2:
		return "GPT2LMHeadModel", "gpt2"
	default:
		return "PrimusForCausalLM", "primus"
	}
}

// layerWindows returns the keys with which the classes of Qwen say which layers have the window.
func (c Config) layerWindows() map[string]any {
	kinds := c.layerTypes()
	first := slices.Index(kinds, slidingAttention)
	if first < 0 {
		first = c.NumLayers
	}
	return map[string]any{
		"use_sliding_window": c.KeysBefore() >= 0, "max_window_layers": first, "layer_types": kinds, "attention_bias": c.HasQKVBias(),
	}
}

// slidingAttention is the type of a layer with the window.
const slidingAttention = "sliding_attention"

// layerTypes returns the types of the layers, with the names of transformers.
func (c Config) layerTypes() []string {
	kinds := make([]string, c.NumLayers)
	for i := range kinds {
		if kinds[i] = "full_attention"; c.KeysBeforeIn(i) >= 0 {
			kinds[i] = slidingAttention
		}
	}
	return kinds
}
