package weights

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/native/model"
)

// reader reads the keys of a config.json and collects what is wrong with them. A key with null is
// one that is absent.
type reader struct {
	keys   map[string]json.RawMessage
	known  map[string]bool // the keys that were asked for
	faults []error
}

func (r *reader) fault(key string, got any, want string) {
	r.faults = append(r.faults, fmt.Errorf("%s: given %v, want %s", key, got, want))
}

// read decodes the value of a key and reports whether there is one.
func (r *reader) read(key string, into any, want string) bool {
	if !r.has(key) {
		return false
	}
	if json.Unmarshal(r.keys[key], into) != nil {
		r.fault(key, short(r.keys[key]), want)
		return false
	}
	return true
}

// short returns the beginning of a JSON value, in one line.
func short(raw json.RawMessage) string {
	const most = 80
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // what fails leaves nothing
	line := compact.String()
	if len(line) <= most {
		return line
	}
	return strings.ToValidUTF8(line[:most], "") + "…"
}

// same reports whether two JSON values are equal.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
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

// whole returns a whole number of at least 0.
func (r *reader) whole(key string, absent int) int {
	if r.read(key, &absent, "a whole number") && (absent < 0 || absent > maxSize) {
		r.fault(key, absent, fmt.Sprintf("a number from 0 to %d", maxSize))
		return 0
	}
	return absent
}

// softcap returns the limit of scores or logits, 0 for null. A class may have one if the key is
// absent.
func (r *reader) softcap(key string, absent float64) float64 {
	if r.given(key) && !r.has(key) {
		return 0
	}
	v := r.number(key, absent)
	if !(v > 0) && r.has(key) {
		r.fault(key, v, "a number > 0, or null for no limit")
	}
	return v
}

func (r *reader) number(key string, absent float64) float64 {
	r.read(key, &absent, "a number")
	return absent
}

// factor returns a number of at least 1, which is necessary.
func (r *reader) factor(key string) float64 {
	v := 1.0
	if r.necessary(key); r.read(key, &v, "a number") && !(v >= 1) {
		r.fault(key, v, "a number >= 1")
		return 1
	}
	return v
}

func (r *reader) flag(key string, absent bool) bool {
	r.read(key, &absent, "true or false")
	return absent
}

func (r *reader) text(key, absent string) string {
	r.read(key, &absent, "a string")
	return absent
}

// activation returns the activation that a key names: "" for the names of SiLU, if the class has
// them, or a form of GELU. That of an absent key is SiLU or else the tanh form.
func (r *reader) activation(key string, silu ...string) model.Activation {
	names := append(silu, "gelu_new", "gelu_pytorch_tanh", "gelu")
	switch got := r.text(key, names[0]); {
	case !slices.Contains(names, got):
		r.fault(key, fmt.Sprintf("%q", got), strings.Join(names, " or "))
		return ""
	case slices.Contains(silu, got):
		return ""
	case got == "gelu":
		return model.GELUErf
	default:
		return model.GELU
	}
}

// has reports whether a key has a value.
func (r *reader) has(key string) bool {
	return r.given(key) && string(r.keys[key]) != "null"
}

// given reports whether there is a key, with or without a value.
func (r *reader) given(key string) bool {
	r.harmless(key)
	_, ok := r.keys[key]
	return ok
}

// harmless says that keys do not matter.
func (r *reader) harmless(keys ...string) {
	if r.known == nil {
		r.known = map[string]bool{}
	}
	for _, key := range keys {
		r.known[key] = true
	}
}

// others adds a fault for each key with a value that nothing has asked for, unless the key, or the
// value of it, is known to leave the results of a model as they are.
func (r *reader) others() {
	r.harmless(harmlessKeys()...)
	for key, values := range inert() {
		if r.known[key] || !r.has(key) {
			continue
		}
		if value := short(r.keys[key]); !slices.Contains(values, value) {
			r.fault(key, value, strings.Join(values, " or ")+": nothing else is supported")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.keys)) {
		if !r.known[key] && r.has(key) {
			r.fault(key, short(r.keys[key]), "no such key: this program does not know what it does to the model; remove it if it does nothing")
		}
	}
}

// harmlessKeys are the keys of transformers that do not change what a model computes: names and
// versions, ids of tokens, settings of generation, of the output of a call, and of heads of other
// tasks.
func harmlessKeys() []string {
	return strings.Fields(`
		_attn_implementation _attn_implementation_autoset _name_or_path architectures attn_implementation auto_map base_model_name_or_path
		custom_pipelines finetuning_task model_name model_type name_or_path pretraining_tp task_specific_params tokenizer_class
		transformers_version transformers.js_config unsloth_fixed unsloth_version dtype torch_dtype torchscript use_bfloat16 use_flash_attn
		use_cache cache_implementation
		bos_token_id cls_token_id decoder_start_token_id eos_token_id mask_token_id pad_token_id sep_token_id unk_token_id
		bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size
		exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id length_penalty max_length max_new_tokens min_length
		no_repeat_ngram_size num_beam_groups num_beams num_return_sequences prefix remove_invalid_values repetition_penalty
		suppress_tokens temperature tf_legacy_loss top_k top_p typical_p
		classifier_dropout id2label label2id num_labels problem_type
		is_decoder output_attentions output_hidden_states output_router_logits output_scores return_dict return_dict_in_generate
		n_ctx reorder_and_upcast_attn summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
		tp_plan base_model_tp_plan base_model_pp_plan`)
}

// inert are the values with which other keys do not change what a model computes.
func inert() map[string][]string {
	values := map[string][]string{
		"chunk_size_feed_forward": {"0"}, "pruned_heads": {"{}"}, "partial_rotary_factor": {"1", "1.0"}, "router_jitter_noise": {"0", "0.0"},
	}
	for _, key := range []string{
		"add_cross_attention", "attention_bias", "is_encoder_decoder", "mlp_bias", "tie_encoder_decoder", "use_mrope", "use_sliding_window",
	} {
		values[key] = []string{"false"}
	}
	return values
}

// necessary adds a fault for each key without a value.
func (r *reader) necessary(keys ...string) {
	for _, key := range keys {
		if !r.has(key) {
			r.fault(key, "nothing", "a value")
		}
	}
}
