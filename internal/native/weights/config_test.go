package weights_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/primustest"
)

func TestParseConfigNamesWhatIsNotSupported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		class string
		key   string
		value any
		want  string
	}{
		{"llama", "model_type", "falcon", `model_type: given "falcon", want one of gemma2, gemma3_text, gpt2, llama`},
		{"llama", "hidden_act", "relu", `hidden_act: given "relu", want silu or swish or gelu_new or gelu_pytorch_tanh or gelu`},
		{"llama", "hidden_act", "gelu_fast", `hidden_act: given "gelu_fast", want silu`},
		{"mixtral", "hidden_act", "gelu", `hidden_act: given "gelu", want silu or swish with experts`},
		{"qwen3 moe", "hidden_act", "gelu_new", `hidden_act: given "gelu_new", want silu or swish with experts`},
		{"llama", "hidden_size", nil, "hidden_size: given 0, want a number from 1"},
		{"llama", "hidden_size", 1 << 40, "hidden_size: given 1099511627776, want a number from 1"},
		{"llama", "hidden_size", 1.5, "hidden_size: given 1.5, want a whole number"},
		{"llama", "vocab_size", map[string]any{"a": 1}, `vocab_size: given {"a":1}, want a whole number`},
		{"llama", "attention_bias", 1, "attention_bias: given 1, want true or false"},
		{"llama", "rope_scaling", map[string]any{"rope_type": "mrope"}, `rope_scaling.rope_type: given "mrope", want default, linear, llama3, yarn, dynamic or longrope`},
		{"llama", "rope_scaling", map[string]any{"rope_type": "dynamic"}, "rope_scaling.factor: given nothing, want a value"},
		{"llama", "rope_scaling", map[string]any{"rope_type": "dynamic", "factor": 0}, "rope_scaling.factor: given 0, want a number >= 1"},
		{"llama", "rope_scaling", map[string]any{"rope_type": "longrope", "short_factor": []int{1, 1}, "long_factor": []int{1, 1, 1}}, "rope_scaling_long_factor: given 3 numbers, want 2"},
		{"llama", "rope_scaling", map[string]any{"rope_type": "longrope", "short_factor": []int{1, 1}, "long_factor": []int{1, 0}}, "rope_scaling_long_factor: given 0, want numbers from"},
		{"llama", "rope_scaling", map[string]any{"rope_type": "longrope", "short_factor": []string{"1"}, "long_factor": []int{1, 1}}, `rope_scaling.short_factor: given ["1"], want a list of numbers`},
		{"llama", "rope_scaling", map[string]any{"rope_type": "longrope", "long_factor": []int{1, 1}}, "rope_scaling.short_factor: given nothing, want a value"},
		{"llama", "rope_scaling", map[string]any{"type": "linear"}, "rope_scaling.factor: given nothing, want a value"},
		{"llama", "rope_parameters", map[string]any{"rope_type": "linear", "factor": 0.5}, "rope_parameters.factor: given 0.5, want a number >= 1"},
		{"llama", "rope_scaling", []int{1}, "rope_scaling: given [1], want an object"},
		{"qwen3", "attention_bias", true, ""},
		{"qwen3 with a window", "max_window_layers", 1, ""},
		{"qwen3 with a window", "layer_types", []string{"sliding_attention", "full_attention"}, ""},
		{"qwen3 with a window", "layer_types", []string{"sliding_attention"}, "layer_types: given 1 types, want one for each of num_hidden_layers 2"},
		{"qwen3 with a window", "layer_types", []string{"sliding_attention", "linear"}, `layer_types: given "linear", want full_attention or sliding_attention`},
		{"llama", "rope_scaling", map[string]any{"rope_type": "yarn"}, "rope_scaling.factor: given nothing, want a value"},
		{"llama", "rope_scaling", map[string]any{"rope_type": "yarn", "factor": 2, "attention_factor": 1.5}, "rope_scaling.attention_factor: given 1.5, want nothing"},
		{"mistral", "sliding_window", 1, "sliding_window: given 1, want at least 2"},
		{"gpt2", "activation_function", "silu", `activation_function: given "silu", want gelu_new or gelu_pytorch_tanh or gelu`},
		{"qwen3 moe", "mlp_only_layers", []int{0}, "mlp_only_layers: given [0], want an empty list"},
		{"qwen3 moe", "decoder_sparse_step", 2, "decoder_sparse_step: given 2, want 1"},
		{"qwen3 moe", "use_sliding_window", true, "use_sliding_window: given true, want false"},
		{"qwen3 moe", "mlp_bias", true, "mlp_bias: given true, want false"},
		{"llama", "quantization_config", map[string]any{"quant_method": "fp8"}, `quantization_config: given {"quant_method":"fp8"}, want none`},
		{"llama", "model_type", "phi3", ""},
		{"phi 3", "partial_rotary_factor", 0.75, "partial_rotary_factor: given 0.75, want 1"},
		{"phi 3", "embd_pdrop", 0.1, "embd_pdrop: given 0.1, want resid_pdrop 0"},
		{"phi 3", "rope_scaling", map[string]any{"type": "longrope"}, "rope_scaling.long_factor: given nothing, want a value"},
		{"phi 3", "rope_scaling", map[string]any{"type": "dynamic", "factor": 2}, `rope_scaling.rope_type: given "dynamic", want default or longrope`},
		{"gpt2", "scale_attn_weights", false, "scale_attn_weights: given false, want true"},
		{"phi 3", "rope_parameters", map[string]any{"rope_type": "default", "partial_rotary_factor": 0.5}, "rope_parameters.partial_rotary_factor: given 0.5, want 1"},
		{"phi 3", "rope_scaling", map[string]any{"type": "yarn", "factor": 2}, `rope_scaling.rope_type: given "yarn", want default or longrope`},
		{"phi 3", "rope_parameters", map[string]any{"rope_type": "linear", "factor": 2}, `rope_parameters.rope_type: given "linear", want default`},
		{"qwen3", "rope_parameters", map[string]any{"full_attention": map[string]any{"rope_type": "default"}}, "rope_parameters.full_attention: given"},
		{"qwen3", "layer_types", []string{"full_attention", "sliding_attention"}, "layer_types: given sliding_attention, want full_attention"},
		{"mistral", "attention_bias", true, "attention_bias: given true, want false"},
		{"mixtral", "router_jitter_noise", 0.1, "router_jitter_noise: given 0.1, want 0 or 0.0"},
		{"llama", "text_config", map[string]any{}, "text_config: given {}, want no such key"},
		{"gemma3", "attn_logit_softcapping", 50, "attn_logit_softcapping: given 50, want null"},
		{"gemma3", "final_logit_softcapping", 30, ""},
		{"gemma2", "final_logit_softcapping", -1, "final_logit_softcapping: given -1, want a number > 0, or null for no limit"},
		{"gemma2", "attn_logit_softcapping", 1e40, "attn_logit_softcapping: given 1e+40, want a number from 2⁻¹⁰⁰ to 2¹⁰⁰"},
		{"gemma2", "attn_logit_softcapping", nil, ""},
		{"gemma2", "hidden_act", "gelu_pytorch_tanh", ""},
		{"gemma2", "rope_scaling", map[string]any{"rope_type": "yarn", "factor": 2}, `rope_scaling.rope_type: given "yarn", want default or linear`},
		{"gemma3", "use_bidirectional_attention", true, "use_bidirectional_attention: given true, want false"},
		{"gemma3", "hidden_activation", "relu", `hidden_activation: given "relu", want gelu_new or gelu_pytorch_tanh or gelu`},
		{"gemma3", "rope_parameters", map[string]any{"full_attention": map[string]any{"rope_type": "yarn", "factor": 2}}, `rope_parameters.full_attention.rope_type: given "yarn", want default or linear`},
		{"gemma3", "rope_parameters", map[string]any{"full_attention": map[string]any{}, "sliding_attention": map[string]any{"a_new_key": 1}}, "rope_parameters.sliding_attention.a_new_key: given 1, want no such key"},
		{"gemma3", "rope_parameters", map[string]any{"full_attention": map[string]any{}, "a_new_key": 1}, "rope_parameters.a_new_key: given 1, want no such key"},
		{"llama", "logit_scale", nil, ""},
		{"linear", "rope_parameters", map[string]any{"rope_type": "linear", "factor": 4}, "want the value of rope_parameters, or only one of the two"},
		{"llama3", "rope_parameters", map[string]any{"rope_type": "llama3", "factor": 32, "high_freq_factor": 4, "low_freq_factor": 1, "original_max_position_embeddings": 8193}, "or only one of the two"},
		{"linear", "rope_parameters", map[string]any{"rope_type": "linear", "factor": 2}, ""},
	} {
		class := tt.class
		if class == "phi 3" {
			class = "llama"
		}
		config := architectures()[class].HFConfig()
		if class != tt.class {
			config["model_type"] = "phi3"
		}
		config[tt.key] = tt.value
		text, err := json.Marshal(config)
		require.NoError(t, err)
		_, err = weights.ParseConfig(text)
		if tt.want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.ErrorContains(t, err, tt.want)
	}
	_, err := weights.ParseConfig([]byte("[]"))
	assert.ErrorContains(t, err, "not a JSON object")
}

// A key that is not known is refused by its name, in every class and at every level.
func TestParseConfigRefusesUnknownKeys(t *testing.T) {
	t.Parallel()
	for class, arch := range architectures() {
		for _, level := range []string{"", "rope_scaling", "rope_parameters"} {
			config := arch.HFConfig()
			if level != "" && config["position_embedding_type"] == nil && config["model_type"] == "gpt2" {
				continue
			}
			at, name := config, "a_new_key"
			if level != "" {
				at = map[string]any{}
				if inner, ok := config[level].(map[string]any); ok {
					at = maps.Clone(inner)
				}
				config[level], name = at, level+".a_new_key"
			}
			at["a_new_key"] = 1
			text, err := json.Marshal(config)
			require.NoError(t, err)
			_, err = weights.ParseConfig(text)
			assert.ErrorContains(t, err, name+": given 1, want no such key", class)
		}
	}
}

// Published folders leave out what is the default of their class, which is not always that of
// Llama.
func TestParseConfigOfPublishedFolders(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want model.Config
	}{
		"mistral 7B v0.1": {
			`{"architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
			"initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
			"num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
			"sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 32000}`,
			model.Config{
				NumLayers: 32, HiddenSize: 4096, FFNHiddenSize: 14336, NumAttentionHeads: 32, NumQueryGroups: 8, SeqLength: 32768,
				MaxPositionEmbeddings: 32768, VocabSize: 32000, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.02, Untie: true,
				Window: [2]int{4095, 0},
			},
		},
		"llama 3.2 1B": {
			`{"attention_bias": false, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 8192,
			"max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
			"num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
			"rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
			"rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": true, "vocab_size": 128256}`,
			model.Config{
				NumLayers: 16, HiddenSize: 2048, FFNHiddenSize: 8192, NumAttentionHeads: 32, NumQueryGroups: 8, SeqLength: 131072,
				MaxPositionEmbeddings: 131072, VocabSize: 128256, RotaryBase: 500000, NormEpsilon: 1e-5, InitMethodStd: 0.02,
				RopeScaling: model.RopeScaling{UseScaling: true, ScalingFactor: 32, LowFreq: 1, HighFreq: 4, OldContext: 8192},
			},
		},
		"qwen 3 0.6B": {
			`{"attention_bias": false, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3072,
			"max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3", "num_attention_heads": 16,
			"num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
			"sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936}`,
			model.Config{
				NumLayers: 28, HiddenSize: 1024, FFNHiddenSize: 3072, NumAttentionHeads: 16, NumQueryGroups: 8, KVChannels: 128, SeqLength: 40960,
				MaxPositionEmbeddings: 40960, VocabSize: 151936, RotaryBase: 1e6, NormEpsilon: 1e-6, InitMethodStd: 0.02, QKNorm: true,
			},
		},
		"qwen 2.5 0.5B": {
			`{"hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24,
			"model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
			"rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936}`,
			model.Config{
				NumLayers: 24, HiddenSize: 896, FFNHiddenSize: 4864, NumAttentionHeads: 14, NumQueryGroups: 2, SeqLength: 32768,
				MaxPositionEmbeddings: 32768, VocabSize: 151936, RotaryBase: 1e6, NormEpsilon: 1e-6, InitMethodStd: 0.02, AddQKVBias: true,
			},
		},
		"qwen 3 30B A3B": {
			`{"attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
			"intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [],
			"model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
			"num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "output_router_logits": false, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
			"tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936}`,
			model.Config{
				NumLayers: 48, HiddenSize: 2048, FFNHiddenSize: 6144, NumAttentionHeads: 32, NumQueryGroups: 4, KVChannels: 128, SeqLength: 40960,
				MaxPositionEmbeddings: 40960, VocabSize: 151936, RotaryBase: 1e6, NormEpsilon: 1e-6, InitMethodStd: 0.02, QKNorm: true, Untie: true,
				Experts: model.Experts{NumExperts: 128, RouterTopk: 8, AuxLossCoeff: 0.001, MoEFFNHiddenSize: 768},
			},
		},
		"phi 3 mini 4k": {
			`{"attention_bias": false, "attention_dropout": 0.0, "embd_pdrop": 0.0, "hidden_act": "silu", "hidden_size": 3072,
			"intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 32,
			"num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096, "resid_pdrop": 0.0,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false,
			"vocab_size": 32064}`,
			model.Config{
				NumLayers: 32, HiddenSize: 3072, FFNHiddenSize: 8192, NumAttentionHeads: 32, NumQueryGroups: 32, SeqLength: 4096,
				MaxPositionEmbeddings: 4096, VocabSize: 32064, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.02, Untie: true,
				Window: [2]int{2046, 0},
			},
		},
		"gpt2": {
			`{"activation_function": "gelu_new", "attn_pdrop": 0.1, "embd_pdrop": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
			"n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "vocab_size": 50257}`,
			model.Config{
				NumLayers: 12, HiddenSize: 768, FFNHiddenSize: 3072, NumAttentionHeads: 12, NumQueryGroups: 12, SeqLength: 1024,
				MaxPositionEmbeddings: 1024, VocabSize: 50257, NormEpsilon: 1e-5, InitMethodStd: 0.02, HiddenDropout: 0.1, AttentionDropout: 0.1,
				Normalization: model.LayerNorm, PositionEmbedding: model.LearnedAbsolute, Activation: model.GELU, AddBiasLinear: true,
			},
		},
	} {
		c, err := weights.ParseConfig([]byte(tt.text))
		require.NoError(t, err, name)
		assert.Equal(t, tt.want, c, name)
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, cfg := range architectures() {
		text, err := json.Marshal(cfg.HFConfig())
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c model.Config
		var err error
		primustest.Cost(t, len(text), 2000, func() { c, err = weights.ParseConfig(text) })
		if err == nil {
			assert.NoError(t, c.Validate())
		}
	})
}
