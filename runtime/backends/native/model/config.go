package model

import (
	"cmp"
	"errors"
	"fmt"
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
	LearnedAbsolute PositionEmbedding = "learned_absolute" // a table is added to the embedding of tokens
)

// Values returns the position embeddings.
func (PositionEmbedding) Values() []string { return []string{string(Rope), string(LearnedAbsolute)} }

// Activation is the function inside the MLP, with Megatron's names.
type Activation string

// The activations.
const (
	SwiGLU Activation = "swiglu"
	GELU   Activation = "gelu" // in its tanh form
)

// Values returns the activations.
func (Activation) Values() []string { return []string{string(SwiGLU), string(GELU)} }

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
	AddBiasLinear         bool              `param:"add_bias_linear"`
	HiddenDropout         float64           `param:"hidden_dropout"`
	AttentionDropout      float64           `param:"attention_dropout"`
	Experts
	Precision
	Recompute
}

// Experts are the parameters of a mixture of experts in place of the MLP.
type Experts struct {
	NumExperts       int     `param:"num_experts"`         // 0 means an MLP
	RouterTopk       int     `param:"moe_router_topk"`     // 0 means 2
	AuxLossCoeff     float64 `param:"moe_aux_loss_coeff"`  // 0 means no auxiliary loss
	MoEFFNHiddenSize int     `param:"moe_ffn_hidden_size"` // 0 means ffn_hidden_size
}

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	f := &faults{}
	f.positive("num_layers", c.NumLayers)
	f.positive("hidden_size", c.HiddenSize)
	f.positive("ffn_hidden_size", c.FFNHiddenSize)
	f.positive("num_attention_heads", c.NumAttentionHeads)
	f.positive("seq_length", c.SeqLength)
	if c.VocabSize < ByteVocab {
		f.bad("vocab_size", c.VocabSize, fmt.Sprintf("at least %d, one for each byte", ByteVocab))
	}
	f.oneOf("normalization", string(c.Normalization), c.Normalization.Values())
	f.oneOf("position_embedding_type", string(c.PositionEmbedding), c.PositionEmbedding.Values())
	f.oneOf("activation_func", string(c.Activation), c.Activation.Values())
	if c.NumAttentionHeads > 0 && c.HiddenSize > 0 {
		switch {
		case c.HiddenSize%c.NumAttentionHeads != 0:
			f.bad("hidden_size", c.HiddenSize, fmt.Sprintf("a multiple of num_attention_heads %d", c.NumAttentionHeads))
		case c.rotary() && c.HeadDim()%2 != 0:
			f.bad("hidden_size / num_attention_heads", c.HeadDim(), "an even head dimension, for rotary positions")
		}
	}
	if c.NumQueryGroups < 0 || c.NumAttentionHeads > 0 && c.NumAttentionHeads%c.Groups() != 0 {
		f.bad("num_query_groups", c.NumQueryGroups, fmt.Sprintf("a divisor of num_attention_heads %d", c.NumAttentionHeads))
	}
	if c.rotary() && !(c.RotaryBase > 1) {
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
	f.probability("hidden_dropout", c.HiddenDropout)
	f.probability("attention_dropout", c.AttentionDropout)
	c.validateExperts(f)
	c.validateRecompute(f)
	if c.FP16 && c.BF16 {
		f.bad("fp16", true, "false with bf16")
	}
	return errors.Join(f.all...)
}

func (c Config) validateExperts(f *faults) {
	if c.NumExperts < 0 || c.NumExperts == 1 {
		f.bad("num_experts", c.NumExperts, "0 for an MLP, or a number >= 2")
	}
	if !c.mixture() {
		return
	}
	if c.topk() < 2 || c.topk() > c.NumExperts {
		f.bad("moe_router_topk", c.RouterTopk, fmt.Sprintf("a number from 2 to num_experts %d: the weight of a single expert is always 1, which teaches the router nothing", c.NumExperts))
	}
	if !(c.AuxLossCoeff >= 0 && c.AuxLossCoeff <= 1) {
		f.bad("moe_aux_loss_coeff", c.AuxLossCoeff, "a number from 0 to 1")
	}
	if c.MoEFFNHiddenSize < 0 {
		f.bad("moe_ffn_hidden_size", c.MoEFFNHiddenSize, "a number >= 1, or 0 for ffn_hidden_size")
	}
	if !c.gated() {
		f.bad("activation_func", c.Activation, "swiglu with num_experts")
	}
	if c.AddBiasLinear {
		f.bad("add_bias_linear", c.AddBiasLinear, "false with num_experts")
	}
}

// faults collects the faults of a configuration.
type faults struct{ all []error }

func (f *faults) bad(key string, got any, want string) {
	f.all = append(f.all, fmt.Errorf("%s: got %v, want %s", key, got, want))
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

// oneOf adds a fault unless got is one of several values or empty.
func (f *faults) oneOf(key, got string, values []string) {
	if got != "" && !slices.Contains(values, got) {
		f.bad(key, fmt.Sprintf("%q", got), strings.Join(values, " or "))
	}
}

// ByteVocab is the number of tokens of the byte-level tokenizer.
const ByteVocab = 256

// HeadDim returns the size of one attention head.
func (c Config) HeadDim() int { return c.HiddenSize / max(c.NumAttentionHeads, 1) }

// Groups returns the number of key and value heads.
func (c Config) Groups() int {
	if c.NumQueryGroups == 0 {
		return max(c.NumAttentionHeads, 1)
	}
	return max(c.NumQueryGroups, 1)
}

// Balanced reports whether layers have an auxiliary loss.
func (c Config) Balanced() bool { return c.mixture() && c.AuxLossCoeff > 0 }

func (c Config) layerNorm() bool        { return c.Normalization == LayerNorm }
func (c Config) rotary() bool           { return cmp.Or(c.PositionEmbedding, Rope) == Rope }
func (c Config) learnedPositions() bool { return c.PositionEmbedding == LearnedAbsolute }
func (c Config) gated() bool            { return cmp.Or(c.Activation, SwiGLU) == SwiGLU }
func (c Config) mixture() bool          { return c.NumExperts > 0 }
func (c Config) positions() int         { return cmp.Or(c.MaxPositionEmbeddings, c.SeqLength) }
func (c Config) topk() int              { return cmp.Or(c.RouterTopk, 2) }
func (c Config) expertSize() int        { return cmp.Or(c.MoEFFNHiddenSize, c.FFNHiddenSize) }

// qkvRows is the number of rows of the fused query, key and value projection.
func (c Config) qkvRows() int { return (c.NumAttentionHeads + 2*c.Groups()) * c.HeadDim() }
