package weights

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/primus-fl/primus/internal/native/model"
)

// Start is the parameter of the weights that a run begins with.
type Start struct {
	LoadHF string `param:"load_hf"` // a folder that Open opens; "" begins with random weights
}

// fixed are the parameters that the weights decide. Values of an experiment must agree with
// them.
var fixed = []string{
	"num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels", "vocab_size", "max_position_embeddings",
	"normalization", "norm_epsilon", "position_embedding_type", "rotary_base", "activation_func", "untie_embeddings_and_output_weights",
	"add_bias_linear", "add_qkv_bias", "attention_bias", "mlp_bias", "qk_layernorm", "qk_layernorm_whole", "norm_placement",
	"layernorm_zero_centered_gamma", "embedding_multiplier", "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping", "rope_local_base_freq", "window_size", "rotary_seq_len_interpolation_factor", "use_rope_scaling", "rope_scaling_factor",
	"rope_scaling_low_freq_factor", "rope_scaling_high_freq_factor", "rope_scaling_original_max_position_embeddings",
	"num_experts", "moe_router_topk", "moe_ffn_hidden_size", "moe_router_pre_softmax", "window_attn_skip_freq",
	"yarn_rotary_scaling_factor", "yarn_original_max_position_embeddings", "yarn_beta_fast", "yarn_beta_slow", "yarn_mscale", "yarn_mscale_all_dim",
	"rope_scaling_short_factor", "rope_scaling_long_factor", "rope_scaling_attention_factor",
}

// habits are the parameters that a folder recommends. Values of an experiment win.
var habits = []string{"init_method_std", "hidden_dropout", "attention_dropout", "moe_aux_loss_coeff"}

// adoptedLength is the length of sequences of a run that does not say one.
const adoptedLength = 1024

// Adopt gives a configuration the architecture of the folder. given reports whether the experiment
// has a value for a parameter; each value that differs from that of the folder is an error that
// begins with the name of the parameter.
func (f *Folder) Adopt(c *model.Config, given func(param string) bool) error {
	own := fields(c)
	merged := f.config
	for name, field := range fields(&merged) {
		switch {
		case name == "seq_length" && !given(name):
			field.SetInt(int64(min(adoptedLength, f.config.MaxPositionEmbeddings)))
		case given(name) || !slices.Contains(fixed, name) && !slices.Contains(habits, name):
			field.Set(own[name])
		}
	}
	resolved, want := merged.Resolved(), f.config.Resolved()
	have, theirs := fields(&resolved), fields(&want)
	var faults []error
	for _, name := range fixed {
		if given(name) && !reflect.DeepEqual(have[name].Interface(), theirs[name].Interface()) {
			faults = append(faults, fmt.Errorf("%s: given %v, want %v as in %s of load_hf %s: leave it out", name, have[name], theirs[name], configName, f.path))
		}
	}
	if faults != nil {
		return errors.Join(append(faults, errors.New("load_hf: if the model preset gives these parameters, write model: hf.yaml into the experiment, a preset without an architecture"))...)
	}
	*c = merged
	return nil
}

// fields returns the parameters of a configuration by name.
func fields(c *model.Config) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.Anonymous {
				walk(v.Field(i))
			} else {
				all[field.Tag.Get("param")] = v.Field(i)
			}
		}
	}
	walk(reflect.ValueOf(c).Elem())
	return all
}
