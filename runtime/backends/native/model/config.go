package model

import (
	"errors"
	"fmt"
)

// Config are the parameters of the architecture, with Megatron's names.
type Config struct {
	NumLayers         int     `param:"num_layers"`
	HiddenSize        int     `param:"hidden_size"`
	FFNHiddenSize     int     `param:"ffn_hidden_size"`
	NumAttentionHeads int     `param:"num_attention_heads"`
	NumQueryGroups    int     `param:"num_query_groups"` // 0 means num_attention_heads
	SeqLength         int     `param:"seq_length"`
	VocabSize         int     `param:"vocab_size"`
	RotaryBase        float64 `param:"rotary_base"`
	NormEpsilon       float64 `param:"norm_epsilon"`
	InitMethodStd     float64 `param:"init_method_std"`
	Untie             bool    `param:"untie_embeddings_and_output_weights"`
}

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	bad := func(key string, got any, want string) {
		faults = append(faults, fmt.Errorf("%s: got %v, want %s", key, got, want))
	}
	positive := func(key string, v int) {
		if v < 1 {
			bad(key, v, "a number >= 1")
		}
	}
	positive("num_layers", c.NumLayers)
	positive("hidden_size", c.HiddenSize)
	positive("ffn_hidden_size", c.FFNHiddenSize)
	positive("num_attention_heads", c.NumAttentionHeads)
	positive("seq_length", c.SeqLength)
	if c.VocabSize < ByteVocab {
		bad("vocab_size", c.VocabSize, fmt.Sprintf("at least %d, one a byte", ByteVocab))
	}
	if c.NumAttentionHeads > 0 && c.HiddenSize > 0 {
		switch {
		case c.HiddenSize%c.NumAttentionHeads != 0:
			bad("hidden_size", c.HiddenSize, fmt.Sprintf("a multiple of num_attention_heads %d", c.NumAttentionHeads))
		case c.HeadDim()%2 != 0:
			bad("hidden_size / num_attention_heads", c.HeadDim(), "an even head dimension, for rotary positions")
		}
	}
	if c.NumQueryGroups < 0 || c.NumAttentionHeads > 0 && c.NumAttentionHeads%c.Groups() != 0 {
		bad("num_query_groups", c.NumQueryGroups, fmt.Sprintf("a divisor of num_attention_heads %d", c.NumAttentionHeads))
	}
	if !(c.RotaryBase > 1) {
		bad("rotary_base", c.RotaryBase, "a number > 1")
	}
	if !(c.NormEpsilon > 0) {
		bad("norm_epsilon", c.NormEpsilon, "a number > 0")
	}
	if !(c.InitMethodStd > 0) {
		bad("init_method_std", c.InitMethodStd, "a number > 0")
	}
	return errors.Join(faults...)
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

// qkvRows is the number of rows of the fused query, key and value projection.
func (c Config) qkvRows() int { return (c.NumAttentionHeads + 2*c.Groups()) * c.HeadDim() }

// NumParameters returns the number of weights.
func (c Config) NumParameters() int {
	h := c.HiddenSize
	layer := 2*h + c.qkvRows()*h + h*h + 3*h*c.FFNHiddenSize
	n := c.VocabSize*h + c.NumLayers*layer + h
	if c.Untie {
		n += c.VocabSize * h
	}
	return n
}

// FLOPsPerToken returns the floating-point operations of a training step for one token of a sequence of seq_length:
//
//	6·W + 6·num_layers·num_attention_heads·head_dim·seq_length
//
// W counts the weights that enter matrix products: all but norms and the input embedding. Forward takes two operations a
// weight, backward four. Attention takes 12 for each head element and key, of which the causal mask leaves half.
func (c Config) FLOPsPerToken() float64 {
	h := c.HiddenSize
	heads := c.NumAttentionHeads * c.HeadDim()
	layer := c.qkvRows()*h + heads*h + 3*h*c.FFNHiddenSize
	weights := c.NumLayers*layer + c.VocabSize*h
	return 6*float64(weights) + 6*float64(c.NumLayers)*float64(heads)*float64(c.SeqLength)
}
