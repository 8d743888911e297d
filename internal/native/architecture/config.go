package architecture

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Normalization is the kind of norm before each part of a layer, with Megatron's names.
type Normalization string

// The normalizations.
const (
	RMSNorm   Normalization = "RMSNorm"   // by the root mean square
	LayerNorm Normalization = "LayerNorm" // to mean 0 and variance 1, with a bias
)

// Values returns the normalizations.
func (Normalization) Values() []string { return []string{string(RMSNorm), string(LayerNorm)} }

// PositionEmbedding is the way in which positions enter a model, with Megatron's names.
type PositionEmbedding string

// The position embeddings.
const (
	Rope            PositionEmbedding = "rope"             // queries and keys are rotated
	YaRN            PositionEmbedding = "yarn"             // the same, with frequencies that are stretched as Yarn says
	DynamicRope     PositionEmbedding = "dynamic"          // or by the length of sequences that have more than the positions of the model
	LongRope        PositionEmbedding = "longrope"         // or as LongRope says
	LearnedAbsolute PositionEmbedding = "learned_absolute" // a table is added to the embedding of tokens
)

// Values returns the position embeddings.
func (PositionEmbedding) Values() []string {
	return []string{string(Rope), string(YaRN), string(DynamicRope), string(LongRope), string(LearnedAbsolute)}
}

// Activation is the function inside the MLP, with Megatron's names.
type Activation string

// The activations.
const (
	SwiGLU   Activation = "swiglu"
	GeGLU    Activation = "geglu"     // gated by gelu
	GeGLUErf Activation = "geglu_erf" // gated by gelu_erf
	GELU     Activation = "gelu"      // in its tanh form
	GELUErf  Activation = "gelu_erf"  // in its exact form
)

// Values returns the activations.
func (Activation) Values() []string {
	return []string{string(SwiGLU), string(GeGLU), string(GeGLUErf), string(GELU), string(GELUErf)}
}

// NormPlacement says where the norms of a layer are.
type NormPlacement string

// The placements.
const (
	PreNorm  NormPlacement = "pre"  // of the input of attention and of the MLP
	PostNorm NormPlacement = "post" // of their outputs, before these are added to the stream
	BothNorm NormPlacement = "both"
)

// Values returns the placements.
func (NormPlacement) Values() []string {
	return []string{string(PreNorm), string(PostNorm), string(BothNorm)}
}

// Config are the parameters of the architecture, with Megatron's names.
type Config struct {
	NumLayers         int     `param:"num_layers"`
	HiddenSize        int     `param:"hidden_size"`
	FFNHiddenSize     int     `param:"ffn_hidden_size"`
	NumAttentionHeads int     `param:"num_attention_heads"`
	NumQueryGroups    int     `param:"num_query_groups"` // 0 means num_attention_heads
	SeqLength         int     `param:"seq_length"`
	VocabSize         int     `param:"vocab_size"`
	RotaryBase        float64 `param:"rotary_base"` // with rope
	NormEpsilon       float64 `param:"norm_epsilon"`
	InitMethodStd     float64 `param:"init_method_std"`
	Untie             bool    `param:"untie_embeddings_and_output_weights"`

	Normalization         Normalization     `param:"normalization"`           // "" means RMSNorm
	PositionEmbedding     PositionEmbedding `param:"position_embedding_type"` // "" means rope
	MaxPositionEmbeddings int               `param:"max_position_embeddings"` // 0 means seq_length
	Activation            Activation        `param:"activation_func"`         // "" means swiglu
	AddBiasLinear         bool              `param:"add_bias_linear"`         // of attention and MLP
	AddQKVBias            bool              `param:"add_qkv_bias"`            // of queries, keys and values alone
	AttentionBias         bool              `param:"attention_bias"`          // of queries, keys, values and the output of attention
	MLPBias               bool              `param:"mlp_bias"`
	QKNorm                bool              `param:"qk_layernorm"`                  // queries and keys of each head are normalised before they are rotated
	QKNormWhole           bool              `param:"qk_layernorm_whole"`            // with qk_layernorm: all heads of a token are normalised in one
	NormPlacement         NormPlacement     `param:"norm_placement"`                // "" means pre
	ZeroCentered          bool              `param:"layernorm_zero_centered_gamma"` // norms multiply by 1 + weight
	EmbeddingMultiplier   float64           `param:"embedding_multiplier"`          // of the vectors of tokens; 0 means 1
	QueryScalar           float64           `param:"query_pre_attn_scalar"`         // scores are divided by its root; 0 means the size of a head
	AttnSoftcap           float64           `param:"attn_logit_softcapping"`        // limit of scores, which tanh bounds; 0 means none
	FinalSoftcap          float64           `param:"final_logit_softcapping"`       // likewise of logits
	LocalBase             float64           `param:"rope_local_base_freq"`          // rotary_base of layers with the window, whose positions are not scaled; 0 means that of the others
	KVChannels            int               `param:"kv_channels"`                   // size of a head; 0 means hidden_size / num_attention_heads
	Window                [2]int            `param:"window_size"`                   // keys before a query that it sees, and after it, which is 0 or -1; [0, 0] and -1 before mean all
	WindowLayers          []int             `param:"window_attn_skip_freq"`         // 1 for each layer with the window, 0 for each without; none means all
	LinearCrossEntropy    bool              // the loss is computed without keeping logits
	HiddenDropout         float64           `param:"hidden_dropout"`
	AttentionDropout      float64           `param:"attention_dropout"`
	RopeScaling
	Experts
	Precision
	Plan
	LoRA
}

// RopeScaling stretches rotary positions for sequences longer than those of the first training.
type RopeScaling struct {
	// Interpolation divides positions; 0 means 1.
	Interpolation float64 `param:"rotary_seq_len_interpolation_factor"`

	// UseScaling divides low frequencies as Llama 3.1 does.
	UseScaling    bool    `param:"use_rope_scaling"`
	ScalingFactor float64 `param:"rope_scaling_factor"`                           // 0 means 8
	LowFreq       float64 `param:"rope_scaling_low_freq_factor"`                  // 0 means 1
	HighFreq      float64 `param:"rope_scaling_high_freq_factor"`                 // 0 means 4
	OldContext    int     `param:"rope_scaling_original_max_position_embeddings"` // 0 means 8192

	Yarn
	LongRopeFactors
}

// Experts are the parameters of a mixture of experts in place of the MLP.
type Experts struct {
	NumExperts       int     `param:"num_experts"`         // 0 means an MLP
	RouterTopk       int     `param:"moe_router_topk"`     // 0 means 2
	AuxLossCoeff     float64 `param:"moe_aux_loss_coeff"`  // 0 means no auxiliary loss
	MoEFFNHiddenSize int     `param:"moe_ffn_hidden_size"` // 0 means ffn_hidden_size

	// PreSoftmax weights experts by a softmax over all of them, not over those of the token.
	PreSoftmax bool `param:"moe_router_pre_softmax"`
}

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	f := &faults{}
	f.positive("num_layers", c.NumLayers)
	f.positive("hidden_size", c.HiddenSize)
	f.positive("ffn_hidden_size", c.FFNHiddenSize)
	f.positive("num_attention_heads", c.NumAttentionHeads)
	f.positive("seq_length", c.SeqLength)
	f.positive("vocab_size", c.VocabSize)
	f.oneOf("normalization", string(c.Normalization), c.Normalization.Values())
	f.oneOf("position_embedding_type", string(c.PositionEmbedding), c.PositionEmbedding.Values())
	f.oneOf("activation_func", string(c.Activation), c.Activation.Values())
	f.oneOf("norm_placement", string(c.NormPlacement), c.NormPlacement.Values())
	if !(c.EmbeddingMultiplier >= 0 && c.EmbeddingMultiplier <= math.MaxFloat32) {
		f.bad("embedding_multiplier", c.EmbeddingMultiplier, "a number > 0 that f32 can hold, or 0 for 1")
	}
	if !(c.QueryScalar >= 0 && c.QueryScalar <= math.MaxFloat32) {
		f.bad("query_pre_attn_scalar", c.QueryScalar, "a number > 0 that f32 can hold, or 0 for the size of a head")
	}
	f.softcap("attn_logit_softcapping", c.AttnSoftcap)
	f.softcap("final_logit_softcapping", c.FinalSoftcap)
	if c.LocalBase != 0 && (!(c.LocalBase > 1) || !c.Rotary() || c.KeysBefore() < 0 || c.PositionEmbedding == YaRN || c.PositionEmbedding == LongRope) {
		f.bad("rope_local_base_freq", c.LocalBase, "a number > 1 with window_size and position_embedding_type rope or dynamic, or 0")
	}
	if c.QKNormWhole && !c.QKNorm {
		f.bad("qk_layernorm_whole", true, "false without qk_layernorm")
	}
	if c.NumAttentionHeads > 0 && c.HiddenSize > 0 {
		switch {
		case c.KVChannels < 0:
			f.bad("kv_channels", c.KVChannels, "a number >= 1, or 0 for hidden_size / num_attention_heads")
		case c.KVChannels == 0 && c.HiddenSize%c.NumAttentionHeads != 0:
			f.bad("hidden_size", c.HiddenSize, fmt.Sprintf("a multiple of num_attention_heads %d, or a number of kv_channels", c.NumAttentionHeads))
		case c.KVChannels > 0 && c.Rotary() && c.KVChannels%2 != 0:
			f.bad("kv_channels", c.KVChannels, "an even number, for rotary positions")
		case c.Rotary() && c.HeadDim()%2 != 0:
			f.bad("hidden_size / num_attention_heads", c.HeadDim(), "an even head dimension, for rotary positions")
		}
	}
	if c.NumQueryGroups < 0 || c.NumAttentionHeads > 0 && c.NumAttentionHeads%c.Groups() != 0 {
		f.bad("num_query_groups", c.NumQueryGroups, fmt.Sprintf("a divisor of num_attention_heads %d", c.NumAttentionHeads))
	}
	if c.Rotary() && !(c.RotaryBase > 1) {
		f.bad("rotary_base", c.RotaryBase, "a number > 1")
	}
	if c.MaxPositionEmbeddings != 0 && c.MaxPositionEmbeddings < c.SeqLength {
		f.bad("max_position_embeddings", c.MaxPositionEmbeddings, fmt.Sprintf("at least seq_length %d", c.SeqLength))
	}
	if !(c.NormEpsilon > 0) {
		f.bad("norm_epsilon", c.NormEpsilon, "a number > 0")
	}
	if !(c.InitMethodStd > 0) {
		f.bad("init_method_std", c.InitMethodStd, "a number > 0")
	}
	if left, right := c.Window[0], c.Window[1]; left < -1 || right < -1 || right > 0 || left == 0 && right == -1 {
		f.bad("window_size", c.Window, "[n, 0] for the n tokens before a token and itself, or null")
	}
	if n := len(c.WindowLayers); n > 0 && (n != c.NumLayers || c.KeysBefore() < 0 || slices.ContainsFunc(c.WindowLayers, func(v int) bool { return v != 0 && v != 1 })) {
		f.bad("window_attn_skip_freq", c.WindowLayers, fmt.Sprintf("null, or with window_size a number, or a list of 0 or 1 for each of num_layers %d", c.NumLayers))
	}
	c.RopeScaling.validate(f, c.Rotary())
	c.validateYarn(f)
	c.validateLengths(f)
	f.probability("hidden_dropout", c.HiddenDropout)
	f.probability("attention_dropout", c.AttentionDropout)
	c.validateExperts(f)
	for _, err := range []error{c.Plan.Validate(c.NumLayers), c.Params.Validate(c.BF16 || c.FP16)} {
		if err != nil {
			f.all = append(f.all, err)
		}
	}
	if c.Format != "" && c.Mixture() {
		f.bad("fp8", c.Format, "null with num_experts")
	}
	c.validateLoRA(f)
	if c.FP16 && c.BF16 {
		f.bad("fp16", true, "false with bf16")
	}
	return errors.Join(f.all...)
}

func (s RopeScaling) validate(f *faults, rotary bool) {
	switch {
	case s.UseScaling && !rotary:
		f.bad("use_rope_scaling", true, "false without rotary positions")
	case s.UseScaling && s.interpolated():
		f.bad("rotary_seq_len_interpolation_factor", s.Interpolation, "1 with use_rope_scaling")
	}
	s = s.resolved()
	if !(s.Interpolation >= 1) {
		f.bad("rotary_seq_len_interpolation_factor", s.Interpolation, "a number >= 1")
	}
	if !(s.ScalingFactor >= 1) {
		f.bad("rope_scaling_factor", s.ScalingFactor, "a number >= 1")
	}
	if !(s.LowFreq > 0) {
		f.bad("rope_scaling_low_freq_factor", s.LowFreq, "a number > 0")
	}
	if !(s.HighFreq > s.LowFreq) {
		f.bad("rope_scaling_high_freq_factor", s.HighFreq, fmt.Sprintf("a number > rope_scaling_low_freq_factor %v", s.LowFreq))
	}
	if s.OldContext < 1 {
		f.bad("rope_scaling_original_max_position_embeddings", s.OldContext, "a number >= 1")
	}
}

// Resolved returns the configuration with the values that zeros stand for.
func (c Config) Resolved() Config {
	c.NumQueryGroups, c.KVChannels, c.MaxPositionEmbeddings = c.Groups(), c.HeadDim(), c.Positions()
	c.Normalization, c.PositionEmbedding = cmp.Or(c.Normalization, RMSNorm), cmp.Or(c.PositionEmbedding, Rope)
	c.Activation, c.NormPlacement = cmp.Or(c.Activation, SwiGLU), cmp.Or(c.NormPlacement, PreNorm)
	c.AddQKVBias, c.AttentionBias, c.MLPBias = c.HasQKVBias(), c.HasOutputBias(), c.HasMLPBias()
	c.AddBiasLinear = c.AttentionBias && c.MLPBias
	c.Window = [2]int{c.KeysBefore(), 0}
	c.RopeScaling = c.RopeScaling.resolved()
	c.RouterTopk, c.MoEFFNHiddenSize = c.Topk(), c.ExpertSize()
	return c
}

// interpolated reports whether positions are divided.
func (s RopeScaling) interpolated() bool { return cmp.Or(s.Interpolation, 1) != 1 }

// resolved returns the scaling with the values that zeros stand for.
func (s RopeScaling) resolved() RopeScaling {
	s.Interpolation = cmp.Or(s.Interpolation, 1)
	s.ScalingFactor, s.LowFreq, s.HighFreq = cmp.Or(s.ScalingFactor, 8), cmp.Or(s.LowFreq, 1), cmp.Or(s.HighFreq, 4)
	s.OldContext = cmp.Or(s.OldContext, 8192)
	return s
}

func (c Config) validateExperts(f *faults) {
	if c.NumExperts < 0 || c.NumExperts == 1 {
		f.bad("num_experts", c.NumExperts, "0 for an MLP, or a number >= 2")
	}
	if !c.Mixture() {
		return
	}
	if c.Topk() < 1 || c.Topk() > c.NumExperts || c.Topk() == 1 && !c.PreSoftmax {
		f.bad("moe_router_topk", c.RouterTopk, fmt.Sprintf("a number from 2 to num_experts %d, or 1 with moe_router_pre_softmax: the weight of a single expert is always 1 without, which teaches the router nothing", c.NumExperts))
	}
	if !(c.AuxLossCoeff >= 0 && c.AuxLossCoeff <= 1) {
		f.bad("moe_aux_loss_coeff", c.AuxLossCoeff, "a number from 0 to 1")
	}
	if c.MoEFFNHiddenSize < 0 {
		f.bad("moe_ffn_hidden_size", c.MoEFFNHiddenSize, "a number >= 1, or 0 for ffn_hidden_size")
	}
	if cmp.Or(c.Activation, SwiGLU) != SwiGLU {
		f.bad("activation_func", c.Activation, "swiglu with num_experts")
	}
	if c.AddBiasLinear {
		f.bad("add_bias_linear", c.AddBiasLinear, "false with num_experts")
	}
	if c.MLPBias {
		f.bad("mlp_bias", c.MLPBias, "false with num_experts")
	}
}

// faults collects the faults of a configuration.
type faults struct{ all []error }

func (f *faults) bad(key string, got any, want string) {
	f.all = append(f.all, fmt.Errorf("%s: given %v, want %s", key, got, want))
}

func (f *faults) positive(key string, v int) {
	if v < 1 {
		f.bad(key, v, "a number >= 1")
	}
}

func (f *faults) probability(key string, v float64) {
	if !(v >= 0 && v < 1) {
		f.bad(key, v, "a number in [0, 1)")
	}
}

func (f *faults) softcap(key string, v float64) {
	if v != 0 && !(v >= 0x1p-100 && v <= 0x1p100) {
		f.bad(key, v, "a number from 2⁻¹⁰⁰ to 2¹⁰⁰, or 0 for no limit")
	}
}

// oneOf adds a fault unless got is one of several values or empty.
func (f *faults) oneOf(key, got string, values []string) {
	if got != "" && !slices.Contains(values, got) {
		f.bad(key, fmt.Sprintf("%q", got), strings.Join(values, " or "))
	}
}

// HeadDim returns the size of one attention head.
func (c Config) HeadDim() int {
	return cmp.Or(c.KVChannels, c.HiddenSize/max(c.NumAttentionHeads, 1))
}

// KeysBefore returns the number of keys before a query that it sees, -1 for all.
func (c Config) KeysBefore() int {
	if c.Window[0] < 1 {
		return -1
	}
	return c.Window[0]
}

// KeysBeforeIn is KeysBefore for a layer, from 0.
func (c Config) KeysBeforeIn(layer int) int {
	if c.WindowLayers != nil && c.WindowLayers[layer] == 0 {
		return -1
	}
	return c.KeysBefore()
}

// HasQKVBias reports whether queries, keys and values have biases.
func (c Config) HasQKVBias() bool { return c.AddQKVBias || c.HasOutputBias() }

// HasOutputBias reports whether the output of attention has a bias.
func (c Config) HasOutputBias() bool { return c.AddBiasLinear || c.AttentionBias }

// HasMLPBias reports whether the projections of MLPs have biases.
func (c Config) HasMLPBias() bool { return c.AddBiasLinear || c.MLPBias }

// Groups returns the number of key and value heads.
func (c Config) Groups() int {
	if c.NumQueryGroups == 0 {
		return max(c.NumAttentionHeads, 1)
	}
	return max(c.NumQueryGroups, 1)
}

// Balanced reports whether layers have an auxiliary loss.
func (c Config) Balanced() bool { return c.Mixture() && c.AuxLossCoeff > 0 }

// HasPreNorms reports whether the inputs of attention and of MLPs are normalised.
func (c Config) HasPreNorms() bool { return c.NormPlacement != PostNorm }

// HasPostNorms reports whether their outputs are.
func (c Config) HasPostNorms() bool {
	return c.NormPlacement == PostNorm || c.NormPlacement == BothNorm
}

// HasLayerNorm reports whether norms are LayerNorm.
func (c Config) HasLayerNorm() bool { return c.Normalization == LayerNorm }

// Rotary reports whether positions are rotary.
func (c Config) Rotary() bool {
	return slices.Contains([]PositionEmbedding{"", Rope, YaRN, DynamicRope, LongRope}, c.PositionEmbedding)
}

// LearnedPositions reports whether there is a table of positions.
func (c Config) LearnedPositions() bool { return c.PositionEmbedding == LearnedAbsolute }

// Gated reports whether the first projection of an MLP computes gate and value.
func (c Config) Gated() bool { return c.Activation != GELU && c.Activation != GELUErf }

// Mixture reports whether layers have experts.
func (c Config) Mixture() bool { return c.NumExperts > 0 }

// Positions returns the number of positions that the model can tell apart.
func (c Config) Positions() int { return cmp.Or(c.MaxPositionEmbeddings, c.SeqLength) }

// Topk returns the number of experts of a token.
func (c Config) Topk() int { return cmp.Or(c.RouterTopk, 2) }

// ExpertSize returns the inner size of an expert.
func (c Config) ExpertSize() int { return cmp.Or(c.MoEFFNHiddenSize, c.FFNHiddenSize) }

// QKVRows is the number of rows of the fused query, key and value projection.
func (c Config) QKVRows() int { return (c.NumAttentionHeads + 2*c.Groups()) * c.HeadDim() }
