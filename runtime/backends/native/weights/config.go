package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/runtime/backends/native/model"
)

// maxSize is the largest size in a config.json. With it, no product of two sizes overflows.
const maxSize = 1 << 28

// ParseConfig returns the architecture that the text of a config.json describes. An absent key has
// the default of the class in transformers. Every fault of the text is part of the error. The
// length of sequences is the largest number of positions.
func ParseConfig(text []byte) (model.Config, error) {
	r := &reader{}
	if err := json.Unmarshal(text, &r.keys); err != nil {
		return model.Config{}, fmt.Errorf("got text that is not a JSON object: %w", err)
	}
	class := r.text("model_type", "")
	parse, known := classes()[class]
	if !known {
		return model.Config{}, fmt.Errorf("model_type: got %q, want one of %s", class, strings.Join(slices.Sorted(maps.Keys(classes())), ", "))
	}
	var c model.Config
	parse(r, &c)
	c.SeqLength = c.MaxPositionEmbeddings
	if r.faults == nil {
		r.faults = append(r.faults, c.Validate())
	}
	return c, errors.Join(r.faults...)
}

// classes are the classes of models by their model_type.
func classes() map[string]func(*reader, *model.Config) {
	return map[string]func(*reader, *model.Config){"llama": llama, "mixtral": mixtral, "gpt2": gpt2, "primus": own}
}

func llama(r *reader, c *model.Config) {
	decoder(r, c)
	bias := r.flag("attention_bias", false)
	if c.AddBiasLinear = r.flag("mlp_bias", false); bias != c.AddBiasLinear {
		r.fault("attention_bias", bias, "the value of mlp_bias: a model has all biases or none")
	}
}

func mixtral(r *reader, c *model.Config) {
	decoder(r, c)
	r.absent("sliding_window", "attention reaches to the first token")
	mixture(r, c)
}

func mixture(r *reader, c *model.Config) {
	c.NumExperts, c.RouterTopk = r.size("num_local_experts", 8), r.size("num_experts_per_tok", 2)
	c.AuxLossCoeff = r.number("router_aux_loss_coef", 0.001)
}

// own is the class of models that are mixtures of the others, with the parameters of this program.
func own(r *reader, c *model.Config) {
	c.Normalization = model.Normalization(r.text("normalization", ""))
	c.PositionEmbedding = model.PositionEmbedding(r.text("position_embedding_type", ""))
	c.Activation = model.Activation(r.text("activation_func", ""))
	decoder(r, c)
	c.AddBiasLinear = r.flag("attention_bias", false)
	if _, mixed := r.keys["num_local_experts"]; mixed {
		mixture(r, c)
	}
}

// decoder reads what the classes after Llama have in common.
func decoder(r *reader, c *model.Config) {
	c.VocabSize, c.HiddenSize, c.FFNHiddenSize = r.size("vocab_size", 0), r.size("hidden_size", 0), r.size("intermediate_size", 0)
	c.NumLayers, c.NumAttentionHeads = r.size("num_hidden_layers", 0), r.size("num_attention_heads", 0)
	c.NumQueryGroups = r.size("num_key_value_heads", c.NumAttentionHeads)
	c.MaxPositionEmbeddings = r.size("max_position_embeddings", 0)
	c.NormEpsilon = r.number("rms_norm_eps", 1e-6)
	c.InitMethodStd = r.number("initializer_range", 0.02)
	c.AttentionDropout = r.number("attention_dropout", 0)
	c.RotaryBase = r.number("rope_theta", 10000)
	c.Untie = !r.flag("tie_word_embeddings", false)
	r.only("hidden_act", "silu", "silu", "swish")
	r.absent("rope_scaling", "positions are rotated by rope_theta alone")
	if d := r.size("head_dim", c.HeadDim()); d != c.HeadDim() {
		r.fault("head_dim", d, fmt.Sprintf("%d, which is hidden_size / num_attention_heads", c.HeadDim()))
	}
}

func gpt2(r *reader, c *model.Config) {
	c.Normalization, c.PositionEmbedding, c.Activation, c.AddBiasLinear = model.LayerNorm, model.LearnedAbsolute, model.GELU, true
	c.VocabSize, c.HiddenSize, c.NumLayers, c.NumAttentionHeads = r.size("vocab_size", 50257), r.size("n_embd", 768), r.size("n_layer", 12), r.size("n_head", 12)
	c.NumQueryGroups = c.NumAttentionHeads
	c.FFNHiddenSize = r.size("n_inner", 4*c.HiddenSize)
	c.MaxPositionEmbeddings = r.size("n_positions", 1024)
	c.NormEpsilon, c.InitMethodStd = r.number("layer_norm_epsilon", 1e-5), r.number("initializer_range", 0.02)
	c.HiddenDropout, c.AttentionDropout = r.number("resid_pdrop", 0.1), r.number("attn_pdrop", 0.1)
	if d := r.number("embd_pdrop", 0.1); d != c.HiddenDropout {
		r.fault("embd_pdrop", d, fmt.Sprintf("resid_pdrop %v: a model has one dropout for both", c.HiddenDropout))
	}
	c.Untie = !r.flag("tie_word_embeddings", true)
	r.only("activation_function", "gelu_new", "gelu_new", "gelu_pytorch_tanh")
	if !r.flag("scale_attn_weights", true) {
		r.fault("scale_attn_weights", false, "true: scores are divided by the square root of the head dimension")
	}
	if r.flag("scale_attn_by_inverse_layer_idx", false) {
		r.fault("scale_attn_by_inverse_layer_idx", true, "false: all layers scale scores alike")
	}
}

// reader reads the keys of a config.json and collects what is wrong with them. A key with null is
// one that is absent.
type reader struct {
	keys   map[string]json.RawMessage
	faults []error
}

func (r *reader) fault(key string, got any, want string) {
	r.faults = append(r.faults, fmt.Errorf("%s: got %v, want %s", key, got, want))
}

// read decodes the value of a key and reports whether there is one.
func (r *reader) read(key string, into any, want string) bool {
	raw, ok := r.keys[key]
	if !ok || string(raw) == "null" {
		return false
	}
	if json.Unmarshal(raw, into) != nil {
		r.fault(key, short(raw), want)
		return false
	}
	return true
}

// short returns the beginning of a JSON value, in one line.
func short(raw json.RawMessage) string {
	const most = 80
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil || line.Len() <= most {
		return line.String()
	}
	return strings.ToValidUTF8(line.String()[:most], "") + "…"
}

// size returns a whole number of at least 1. A default of 0 makes the key necessary.
func (r *reader) size(key string, absent int) int {
	n := absent
	if r.read(key, &n, "a whole number") && (n < 1 || n > maxSize) || n < 1 {
		r.fault(key, n, fmt.Sprintf("a number from 1 to %d", maxSize))
		return 1
	}
	return n
}

func (r *reader) number(key string, absent float64) float64 {
	r.read(key, &absent, "a number")
	return absent
}

func (r *reader) flag(key string, absent bool) bool {
	r.read(key, &absent, "true or false")
	return absent
}

func (r *reader) text(key, absent string) string {
	r.read(key, &absent, "a string")
	return absent
}

// only adds a fault unless the value of a key is one of several.
func (r *reader) only(key, absent string, values ...string) {
	if got := r.text(key, absent); !slices.Contains(values, got) {
		r.fault(key, fmt.Sprintf("%q", got), strings.Join(values, " or "))
	}
}

// absent adds a fault if a key has a value.
func (r *reader) absent(key, does string) {
	if raw, ok := r.keys[key]; ok && string(raw) != "null" {
		r.fault(key, short(raw), "null: "+does)
	}
}
