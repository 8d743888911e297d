package weights

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/tensor"
)

// maxSize is the largest size in a config.json. With it, no product of two sizes overflows.
const maxSize = 1 << 28

// description is what a config.json says.
type description struct {
	config model.Config
	dtype  tensor.DType // of numbers
	class  string
}

// parseConfig returns what the text of a config.json describes. An absent key has the default of
// the class in transformers. Every fault of the text is part of the error. The length of sequences
// is the largest number of positions.
func parseConfig(text []byte) (description, error) {
	r := &reader{}
	if err := json.Unmarshal(text, &r.keys); err != nil {
		return description{}, fmt.Errorf("given text that is not a JSON object: %w", err)
	}
	class := r.text("model_type", "")
	parse, known := classes()[class]
	if !known {
		return description{}, fmt.Errorf("model_type: given %q, want one of %s", class, strings.Join(slices.Sorted(maps.Keys(classes())), ", "))
	}
	var c model.Config
	parse(r, &c)
	if r.has("quantization_config") {
		r.fault("quantization_config", short(r.keys["quantization_config"]), "none: weights are read as f32, bf16 or f16; use the folder that this one was made of")
	}
	c.SeqLength = c.MaxPositionEmbeddings
	dtype, name := tensor.F32, r.text("dtype", r.text("torch_dtype", ""))
	for _, d := range dtypes() {
		if architecture.HFDType(d) == name {
			dtype = d
		}
	}
	r.others()
	if r.faults == nil {
		r.faults = append(r.faults, c.Validate())
	}
	return description{c, dtype, class}, errors.Join(r.faults...)
}

// classes are the classes of models by their model_type.
func classes() map[string]func(*reader, *model.Config) {
	return map[string]func(*reader, *model.Config){
		"llama": llama, "mistral": mistral, "mixtral": mixtral, "qwen2": qwen2, "qwen3": qwen3, "qwen3_moe": qwen3MoE, phi3Class: phi3,
		"olmo2": olmo2, "gemma2": gemma2, "gemma3_text": gemma3, "gpt2": gpt2, "primus": own,
	}
}

func llama(r *reader, c *model.Config) {
	decoder(r, c, defaults{positions: 2048})
	biases(r, c)
}

func mistral(r *reader, c *model.Config) {
	decoder(r, c, defaults{groups: 8, positions: 131072})
	window(r, c, 4096)
}

func mixtral(r *reader, c *model.Config) {
	decoder(r, c, defaults{groups: 8, positions: 131072, rotaryBase: 1e6, epsilon: 1e-5})
	experts(r, c)
	window(r, c, 0)
	mixture(r, c)
}

func qwen2(r *reader, c *model.Config) {
	decoder(r, c, defaults{groups: 32, positions: 32768})
	c.AddQKVBias = true
	r.harmless("attention_bias") // transformers does not read it in this class
	layerWindows(r, c)
}

func qwen3(r *reader, c *model.Config) {
	decoder(r, c, defaults{groups: 32, positions: 32768, headDim: 128})
	c.QKNorm, c.AttentionBias = true, r.flag("attention_bias", false)
	layerWindows(r, c)
}

func qwen3MoE(r *reader, c *model.Config) {
	decoder(r, c, defaults{groups: 4, positions: 32768})
	experts(r, c)
	c.QKNorm, c.AttentionBias = true, r.flag("attention_bias", false)
	c.NumExperts, c.RouterTopk = r.size("num_experts", 128), r.size("num_experts_per_tok", 8)
	c.MoEFFNHiddenSize = r.size("moe_intermediate_size", 768)
	c.AuxLossCoeff = r.number("router_aux_loss_coef", 0.001)
	c.PreSoftmax = !r.flag("norm_topk_prob", false)
	if step := r.size("decoder_sparse_step", 1); step != 1 {
		r.fault("decoder_sparse_step", step, "1: every layer has experts")
	}
	var dense []int
	if r.read("mlp_only_layers", &dense, "a list of whole numbers") && len(dense) > 0 {
		r.fault("mlp_only_layers", dense, "an empty list: every layer has experts")
	}
	if r.flag("use_sliding_window", false) {
		r.fault("use_sliding_window", true, "false with experts")
	}
	noWindows(r, c)
}

func olmo2(r *reader, c *model.Config) {
	decoder(r, c, defaults{positions: 2048, epsilon: 1e-5})
	c.NormPlacement, c.QKNorm, c.QKNormWhole = model.PostNorm, true, true
	c.AttentionBias = r.flag("attention_bias", false)
}

func gemma2(r *reader, c *model.Config) {
	gemma(r, c, defaults{
		vocab: 256000, hidden: 2304, ffn: 9216, layers: 26, heads: 8, groups: 4, positions: 8192, headDim: 256, tied: true,
		activation: "hidden_activation", scalings: []string{"default", "linear"},
	})
	c.AttnSoftcap, c.FinalSoftcap = r.softcap("attn_logit_softcapping", 50), r.softcap("final_logit_softcapping", 30)
	r.harmless("hidden_act") // older folders have both keys, and transformers does not read this one
	gemmaWindows(r, c, 2)
}

func gemma3(r *reader, c *model.Config) {
	gemma(r, c, defaults{
		vocab: 262208, hidden: 2304, ffn: 9216, layers: 26, heads: 8, groups: 4, positions: 131072, headDim: 256, rotaryBase: 1e6, tied: true,
		activation: "hidden_activation", scalings: []string{"default", "linear"}, byLayer: true,
	})
	c.QKNorm = true
	if c.LocalBase == 0 {
		c.LocalBase = r.number("rope_local_base_freq", 10000)
	}
	r.harmless("rope_local_base_freq") // rope_parameters wins
	c.FinalSoftcap = r.softcap("final_logit_softcapping", 0)
	if key := "attn_logit_softcapping"; r.has(key) {
		r.fault(key, short(r.keys[key]), "null: transformers does not cap scores in this class")
	}
	gemmaWindows(r, c, r.size("sliding_window_pattern", 6))
	r.harmless("_sliding_window_pattern") // which newer versions write beside layer_types
}

// gemma reads what the classes of Gemma have in common, but for the windows.
func gemma(r *reader, c *model.Config, absent defaults) {
	c.NormPlacement, c.ZeroCentered = model.BothNorm, true
	decoder(r, c, absent)
	c.EmbeddingMultiplier, c.QueryScalar = architecture.GemmaMultiplier(c.HiddenSize), r.number("query_pre_attn_scalar", 256)
	if !(c.QueryScalar > 0) {
		r.fault("query_pre_attn_scalar", c.QueryScalar, "a number > 0")
	}
	c.AttentionBias = r.flag("attention_bias", false)
	if r.flag("use_bidirectional_attention", false) {
		r.fault("use_bidirectional_attention", true, "false: tokens see those before them")
	}
}

// gemmaWindows reads the window of all layers but each every-th, or of those that layer_types says.
func gemmaWindows(r *reader, c *model.Config, every int) {
	windows := make([]int, c.NumLayers)
	for i := range windows {
		if (i+1)%every != 0 {
			windows[i] = 1
		}
	}
	layerTypes(r, windows)
	if window(r, c, 4096); c.KeysBefore() < 0 {
		r.fault("sliding_window", "null", "a number of tokens")
	}
	if slices.Contains(windows, 0) {
		c.WindowLayers = windows
	}
}

// phi3Class is the class whose folders have the matrices of queries, keys and values in one, and
// those of gate and value.
const phi3Class = "phi3"

func phi3(r *reader, c *model.Config) {
	decoder(r, c, defaults{positions: 4096, original: 4096, epsilon: 1e-5, scalings: []string{"default", "longrope"}})
	window(r, c, 0)
	oneDropout(r, c, 0)
	wholeHeads(r)
}

func wholeHeads(r *reader) {
	if part := r.number("partial_rotary_factor", 1); part != 1 {
		r.fault("partial_rotary_factor", part, "1: whole heads are rotated")
	}
}

// oneDropout reads the dropout of embeddings and of what a layer adds.
func oneDropout(r *reader, c *model.Config, absent float64) {
	c.HiddenDropout = r.number("resid_pdrop", absent)
	if d := r.number("embd_pdrop", absent); d != c.HiddenDropout {
		r.fault("embd_pdrop", d, fmt.Sprintf("resid_pdrop %v: a model has one dropout for both", c.HiddenDropout))
	}
}

// own is the class of models that are mixtures of the others, with the parameters of this program.
func own(r *reader, c *model.Config) {
	c.Normalization = model.Normalization(r.text("normalization", ""))
	c.PositionEmbedding = model.PositionEmbedding(r.text("position_embedding_type", ""))
	decoder(r, c, defaults{})
	c.Activation = model.Activation(r.text("activation_func", ""))
	biases(r, c)
	c.AddQKVBias, c.QKNorm, c.QKNormWhole = r.flag("add_qkv_bias", false), r.flag("qk_layernorm", false), r.flag("qk_layernorm_whole", false)
	c.NormPlacement, c.ZeroCentered = model.NormPlacement(r.text("norm_placement", "")), r.flag("layernorm_zero_centered_gamma", false)
	c.EmbeddingMultiplier, c.QueryScalar, c.LocalBase = r.number("embedding_multiplier", 0), r.number("query_pre_attn_scalar", 0), r.number("rope_local_base_freq", 0)
	c.AttnSoftcap, c.FinalSoftcap = r.number("attn_logit_softcapping", 0), r.number("final_logit_softcapping", 0)
	window(r, c, 0)
	if r.given("num_local_experts") {
		mixture(r, c)
		c.PreSoftmax = r.flag("moe_router_pre_softmax", false)
	}
	if r.has("layer_types") {
		c.WindowLayers = make([]int, c.NumLayers)
		layerTypes(r, c.WindowLayers)
	}
}

// biases reads which projections have biases.
func biases(r *reader, c *model.Config) {
	c.AttentionBias, c.MLPBias = r.flag("attention_bias", false), r.flag("mlp_bias", false)
	if c.AttentionBias && c.MLPBias {
		c.AddBiasLinear, c.AttentionBias, c.MLPBias = true, false, false
	}
}

// experts refuses the activations that experts do not have.
func experts(r *reader, c *model.Config) {
	if c.Activation != "" && c.Activation != model.SwiGLU {
		r.fault("hidden_act", fmt.Sprintf("%q", r.text("hidden_act", "")), "silu or swish with experts")
		c.Activation = ""
	}
}

func mixture(r *reader, c *model.Config) {
	c.NumExperts, c.RouterTopk = r.size("num_local_experts", 8), r.size("num_experts_per_tok", 2)
	c.AuxLossCoeff = r.number("router_aux_loss_coef", 0.001)
}

// window reads the number of tokens that a token sees, itself included; null means all. A class may
// have a window if the key is absent.
func window(r *reader, c *model.Config, absent int) {
	if r.given("sliding_window") {
		absent = 0
	}
	if !r.has("sliding_window") && absent == 0 {
		return
	}
	if n := r.size("sliding_window", absent); n > 1 {
		c.Window = [2]int{n - 1, 0}
	} else {
		r.fault("sliding_window", n, "at least 2 tokens")
	}
}

// layerWindows reads the window of Qwen and which layers have it: those of the type
// sliding_attention or, without types, those from max_window_layers on.
func layerWindows(r *reader, c *model.Config) {
	if !r.flag("use_sliding_window", false) {
		noWindows(r, c)
		return
	}
	windows := make([]int, c.NumLayers)
	if first := r.whole("max_window_layers", 28); first < c.NumLayers {
		for i := range windows[first:] {
			windows[first+i] = 1
		}
	}
	if layerTypes(r, windows); !slices.Contains(windows, 1) {
		return
	}
	window(r, c, 4096)
	if slices.Contains(windows, 0) {
		c.WindowLayers = windows
	}
}

// noWindows passes over the window that use_sliding_window turns off.
func noWindows(r *reader, c *model.Config) {
	r.harmless("sliding_window", "max_window_layers")
	windows := make([]int, c.NumLayers)
	if layerTypes(r, windows); slices.Contains(windows, 1) {
		r.fault("layer_types", "sliding_attention", "full_attention in all layers where use_sliding_window is false")
	}
}

// layerTypes sets which layers have the window, if there are types of layers.
func layerTypes(r *reader, windows []int) {
	var kinds []string
	if !r.read("layer_types", &kinds, "a list of strings") {
		return
	}
	if len(kinds) != len(windows) {
		r.fault("layer_types", fmt.Sprintf("%d types", len(kinds)), fmt.Sprintf("one for each of num_hidden_layers %d", len(windows)))
		return
	}
	for i, kind := range kinds {
		switch kind {
		case "sliding_attention":
			windows[i] = 1
		case "full_attention":
			windows[i] = 0
		default:
			r.fault("layer_types", fmt.Sprintf("%q", kind), "full_attention or sliding_attention")
		}
	}
}

// defaults are what a class has for absent keys. Zeros mean the values of Llama.
type defaults struct {
	groups, positions, headDim int
	original                   int // positions of the first training, for longrope; 0 means all
	rotaryBase, epsilon        float64
	scalings                   []string // types of positions that transformers computes in this class; nil means all
	byLayer                    bool     // rope_parameters are by the type of layers, or those of all but layers with the window

	vocab, hidden, ffn, layers, heads int    // 0 makes the key necessary
	tied                              bool   // the output layer shares the weights of the embedding
	activation                        string // the key of the activation, GELU in its tanh form if absent; "" is hidden_act, SiLU if absent
}

// decoder reads what the classes after Llama have in common.
func decoder(r *reader, c *model.Config, d defaults) {
	c.VocabSize, c.HiddenSize, c.FFNHiddenSize = r.size("vocab_size", d.vocab), r.size("hidden_size", d.hidden), r.size("intermediate_size", d.ffn)
	c.NumLayers, c.NumAttentionHeads = r.size("num_hidden_layers", d.layers), r.size("num_attention_heads", d.heads)
	if r.given("num_key_value_heads") {
		d.groups = 0
	}
	c.NumQueryGroups = r.size("num_key_value_heads", cmp.Or(d.groups, c.NumAttentionHeads))
	c.MaxPositionEmbeddings = r.size("max_position_embeddings", d.positions)
	c.NormEpsilon = r.number("rms_norm_eps", cmp.Or(d.epsilon, 1e-6))
	c.InitMethodStd = r.number("initializer_range", 0.02)
	c.AttentionDropout = r.number("attention_dropout", 0)
	c.RotaryBase = cmp.Or(d.rotaryBase, 10000)
	c.Untie = !r.flag("tie_word_embeddings", d.tied)
	key, silu := "hidden_act", []string{"silu", "swish"}
	if d.activation != "" {
		key, silu = d.activation, nil
	}
	switch c.Activation = r.activation(key, silu...); c.Activation {
	case model.GELU:
		c.Activation = model.GeGLU
	case model.GELUErf:
		c.Activation = model.GeGLUErf
	}
	if r.given("head_dim") {
		d.headDim = 0
	}
	if n := r.size("head_dim", cmp.Or(d.headDim, c.HeadDim(), 1)); n != c.HeadDim() || c.HiddenSize%c.NumAttentionHeads != 0 {
		c.KVChannels = n
	}
	rotation(r, c, d)
}

// rotation reads the base of rotary positions and how they are scaled. Newer folders have all of it
// in rope_parameters.
func rotation(r *reader, c *model.Config, d defaults) {
	c.RotaryBase = r.number("rope_theta", c.RotaryBase)
	if r.has("rope_scaling") && r.has("rope_parameters") && !same(r.keys["rope_scaling"], r.keys["rope_parameters"]) {
		r.fault("rope_scaling", short(r.keys["rope_scaling"]), "the value of rope_parameters, or only one of the two")
	}
	old := d.original
	if r.has(oldContext) {
		old = r.size(oldContext, 0)
	}
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		inner := &reader{}
		if !r.read(key, &inner.keys, "an object") {
			continue
		}
		if d.byLayer && inner.has("full_attention") {
			r.faults = append(r.faults, rotationByLayer(inner, c, d, key)...)
			continue
		}
		if kind := scaling(inner, c, old); d.scalings != nil && !slices.Contains(d.scalings, kind) {
			inner.fault("rope_type", fmt.Sprintf("%q", kind), strings.Join(d.scalings, " or ")+" in this class of models")
		}
		inner.others()
		for _, fault := range inner.faults {
			r.faults = append(r.faults, fmt.Errorf("%s.%w", key, fault))
		}
	}
}

// rotationByLayer reads scalings of positions by the type of layers.
func rotationByLayer(r *reader, c *model.Config, d defaults, key string) []error {
	for _, layers := range []string{"full_attention", "sliding_attention"} {
		inner := &reader{}
		if !r.read(layers, &inner.keys, "an object") {
			continue
		}
		of, kinds := c, d.scalings
		if layers == "sliding_attention" {
			of, kinds = &model.Config{RotaryBase: 10000}, []string{"default"}
		}
		if kind := scaling(inner, of, 0); !slices.Contains(kinds, kind) {
			inner.fault("rope_type", fmt.Sprintf("%q", kind), strings.Join(kinds, " or ")+" in these layers")
		}
		if of != c {
			c.LocalBase = of.RotaryBase
		}
		inner.others()
		for _, fault := range inner.faults {
			r.faults = append(r.faults, fmt.Errorf("%s.%w", layers, fault))
		}
	}
	r.others()
	var all []error
	for _, fault := range r.faults {
		all = append(all, fmt.Errorf("%s.%w", key, fault))
	}
	return all
}

// oldContext is the key of the positions of the first training. Beside the scaling of positions, it
// wins over the one in it.
const oldContext = "original_max_position_embeddings"

// scaling returns the type of the scaling. old are the positions of the first training, 0 if only
// the scaling says them.
func scaling(r *reader, c *model.Config, old int) (kind string) {
	c.RotaryBase = r.number("rope_theta", c.RotaryBase)
	wholeHeads(r)
	switch kind = r.text("rope_type", r.text("type", "default")); kind {
	case "default":
	case "linear":
		c.Interpolation = r.factor("factor")
	case "llama3":
		c.UseScaling = true
		c.ScalingFactor, c.LowFreq, c.HighFreq = r.factor("factor"), r.number("low_freq_factor", 0), r.number("high_freq_factor", 0)
		c.OldContext = cmp.Or(old, r.size(oldContext, old))
		r.necessary("low_freq_factor", "high_freq_factor")
	case "dynamic":
		c.PositionEmbedding, c.ScalingFactor = model.DynamicRope, r.factor("factor")
		r.harmless(oldContext) // transformers does not read it with this type
	case "longrope":
		longRope(r, c, cmp.Or(old, r.size(oldContext, cmp.Or(old, c.MaxPositionEmbeddings))))
	case "yarn":
		yarn(r, c, old)
	default:
		r.fault("rope_type", fmt.Sprintf("%q", kind), "default, linear, llama3, yarn, dynamic or longrope")
		r.harmless(slices.Collect(maps.Keys(r.keys))...) // as they belong to the type
	}
	return kind
}

func longRope(r *reader, c *model.Config, old int) {
	c.PositionEmbedding, c.OldContext = model.LongRope, old
	const numbers = "a list of numbers"
	r.read("short_factor", &c.ShortFactors, numbers)
	r.read("long_factor", &c.LongFactors, numbers)
	r.necessary("short_factor", "long_factor")
	factor := r.number("factor", float64(c.MaxPositionEmbeddings)/float64(old))
	c.AttentionFactor = r.number("attention_factor", architecture.LongRopeAttention(factor, float64(old)))
	if c.AttentionFactor == 0 {
		r.fault("attention_factor", 0, "a number > 0")
	}
}

func yarn(r *reader, c *model.Config, old int) {
	c.PositionEmbedding = model.YaRN
	c.BetaFast, c.BetaSlow = r.number("beta_fast", 32), r.number("beta_slow", 1)
	c.Context = cmp.Or(old, r.size(oldContext, cmp.Or(old, c.MaxPositionEmbeddings)))
	if c.Context == c.MaxPositionEmbeddings {
		r.necessary("factor")
	}
	c.Factor = r.number("factor", float64(c.MaxPositionEmbeddings)/float64(c.Context)) // without one, that which the positions need
	c.MScale = 1
	if one, all := r.number("mscale", 0), r.number("mscale_all_dim", 0); one != 0 && all != 0 {
		c.MScale, c.MScaleAllDim = one, all
	}
	if r.has("attention_factor") {
		r.fault("attention_factor", r.number("attention_factor", 0), "nothing: it follows from factor and mscale")
	}
	if !r.flag("truncate", true) {
		r.fault("truncate", false, "true: the limits of pairs are whole numbers")
	}
}

func gpt2(r *reader, c *model.Config) {
	c.Normalization, c.PositionEmbedding, c.AddBiasLinear = model.LayerNorm, model.LearnedAbsolute, true
	c.VocabSize, c.HiddenSize, c.NumLayers, c.NumAttentionHeads = r.size("vocab_size", 50257), r.size("n_embd", 768), r.size("n_layer", 12), r.size("n_head", 12)
	c.NumQueryGroups = c.NumAttentionHeads
	c.FFNHiddenSize = r.size("n_inner", 4*c.HiddenSize)
	c.MaxPositionEmbeddings = r.size("n_positions", 1024)
	c.NormEpsilon, c.InitMethodStd = r.number("layer_norm_epsilon", 1e-5), r.number("initializer_range", 0.02)
	oneDropout(r, c, 0.1)
	c.AttentionDropout = r.number("attn_pdrop", 0.1)
	c.Untie = !r.flag("tie_word_embeddings", true)
	c.Activation = r.activation("activation_function")
	if !r.flag("scale_attn_weights", true) {
		r.fault("scale_attn_weights", false, "true: scores are divided by the square root of the head dimension")
	}
	if r.flag("scale_attn_by_inverse_layer_idx", false) {
		r.fault("scale_attn_by_inverse_layer_idx", true, "false: all layers scale scores alike")
	}
}
