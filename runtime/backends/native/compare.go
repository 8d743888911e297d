package native

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/native/checkpoint"
)

// check returns an error when the state contradicts the manifest of its checkpoint.
func (s *state) check(c *checkpoint.Checkpoint) error {
	if int64(s.Step) != c.Step() {
		return &checkpoint.CorruptError{Path: c.Path(), File: stateFile, Got: fmt.Sprintf("step %d", s.Step), Want: fmt.Sprintf("step %d, as in the manifest", c.Step())}
	}
	if s.Position > math.MaxInt64 {
		return &checkpoint.CorruptError{Path: c.Path(), File: stateFile, Got: fmt.Sprintf("%d samples", s.Position), Want: "a number of samples"}
	}
	return nil
}

// modelKeys are the keys of config.json that determine the function that a model computes, with the
// parameters that they come from.
var modelKeys = map[string]string{
	"model_type": "normalization, position_embedding_type, activation_func, add_qkv_bias, qk_layernorm, norm_placement or window_size", "vocab_size": "vocab_size",
	"hidden_size": "hidden_size", "n_embd": "hidden_size",
	"intermediate_size": "ffn_hidden_size", "n_inner": "ffn_hidden_size",
	"num_hidden_layers": "num_layers", "n_layer": "num_layers",
	"num_attention_heads": "num_attention_heads", "n_head": "num_attention_heads", "head_dim": "num_attention_heads or kv_channels",
	"num_key_value_heads": "num_query_groups",
	"rms_norm_eps":        "norm_epsilon", "layer_norm_epsilon": "norm_epsilon",
	"rope_theta":     "rotary_base",
	"attention_bias": "add_bias_linear or attention_bias", "mlp_bias": "add_bias_linear or mlp_bias",
	"add_qkv_bias": "add_qkv_bias", "qk_layernorm": "qk_layernorm", "qk_layernorm_whole": "qk_layernorm_whole", "norm_placement": "norm_placement", "sliding_window": "window_size",
	"rope_scaling":                  "use_rope_scaling, rotary_seq_len_interpolation_factor or position_embedding_type",
	"layernorm_zero_centered_gamma": "layernorm_zero_centered_gamma", "embedding_multiplier": "embedding_multiplier", "query_pre_attn_scalar": "query_pre_attn_scalar",
	"rope_local_base_freq": "rope_local_base_freq", "attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping", "hidden_activation": "activation_func",
	"original_max_position_embeddings": "rope_scaling_original_max_position_embeddings",
	"hidden_act":                       "activation_func", "activation_function": "activation_func", "activation_func": "activation_func",
	"normalization": "normalization", "position_embedding_type": "position_embedding_type",
	"tie_word_embeddings": "untie_embeddings_and_output_weights",
	"num_local_experts":   "num_experts", "num_experts_per_tok": "moe_router_topk", "moe_router_pre_softmax": "moe_router_pre_softmax",
	"layer_types": "window_attn_skip_freq", "num_experts": "num_experts", "moe_intermediate_size": "moe_ffn_hidden_size", "norm_topk_prob": "moe_router_pre_softmax",
}

// modelDefaults are the values of keys of config.json that older versions of this program wrote as
// empty strings.
var modelDefaults = map[string]any{"normalization": "RMSNorm", "position_embedding_type": "rope", "activation_func": "swiglu"}

// checkModel returns an error if the weights of a checkpoint belong to another model than that of
// this run, even if the shapes are equal.
func (t *trainer) checkModel(c *checkpoint.Checkpoint) error {
	saved := map[string]any{}
	if err := c.JSON(configFile, &saved); err != nil {
		return err
	}
	own, err := asJSON(t.args.HFConfig())
	if err != nil {
		return err
	}
	for key, value := range modelDefaults {
		if saved[key] == "" {
			saved[key] = value
		}
	}
	var differs []string
	for key, param := range modelKeys {
		if have, want := saved[key], own[key]; !reflect.DeepEqual(have, want) {
			differs = append(differs, fmt.Sprintf("%s (%s %v, and this run's is %v)", param, key, shown(have), shown(want)))
		}
	}
	if differs == nil {
		return nil
	}
	slices.Sort(differs)
	what := "has another model: it differs in " + strings.Join(differs, ", ")
	if t.args.Load == "" {
		return t.anotherRun(c, what)
	}
	return fmt.Errorf("checkpoint %s %s: give the parameters that it was trained with", c.Path(), what)
}

// shown formats a value of a JSON file for a message.
func shown(v any) any {
	if v == nil {
		return "not given"
	}
	return v
}

// asJSON returns a mapping as it is after encoding and decoding.
func asJSON(m map[string]any) (map[string]any, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", configFile, err)
	}
	var again map[string]any
	return again, json.Unmarshal(text, &again)
}

// notCompared are parameters of Args that may change without a message: where a run reads and
// writes, and what it reports.
var notCompared = []string{
	"train_data_path", "valid_data_path", "test_data_path", "train_data_max_bytes", "train_data_format", "text_key", "on_bad_record", "verify_data", "tokenizer_type", "tokenizer_model", "log_interval", "eval_interval", "eval_iters", "final_eval_windows",
	"recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules", "recompute_activations",
	"cross_entropy_loss_fusion", "cross_entropy_fusion_impl",
	"save", "save_interval", "save_initial", "async_save", "exit_interval", "exit_duration_in_mins", "allow_nonfinite_weights", "keep_last", "keep_every", "keep_best", "save_retain_interval", "load", "load_hf", "dump_batches", "disable_tensorboard", "sample_prompt",
	"disable_mlflow", "mlflow_tracking_uri", "mlflow_experiment_name", "mlflow_run_name",
	"disable_wandb", "wandb_project", "wandb_exp_name", "wandb_save_dir", "wandb_entity", "model_name",
}

// compared returns the parameters that a resumed run is compared with, in their JSON form.
func (a *Args) compared() map[string]any {
	all := map[string]any{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			field, f := v.Type().Field(i), v.Field(i)
			name := field.Tag.Get("param")
			switch {
			case field.Anonymous:
				walk(f)
			case name == "" || slices.Contains(notCompared, name):
			case f.CanInt():
				all[name] = float64(f.Int())
			case f.Kind() == reflect.Array:
				all[name] = fmt.Sprint(f.Interface())
			case f.Kind() == reflect.String:
				all[name] = f.String()
			case f.Kind() == reflect.Slice:
				all[name] = fmt.Sprint(f.Interface())
			default:
				all[name] = f.Interface()
			}
		}
	}
	walk(reflect.ValueOf(a).Elem())
	return all
}

// patchPrefix begins the names of parameters of patches in a checkpoint, which holds them only if
// they were given.
const patchPrefix = "patch."

// compared returns the parameters that a resumed run is compared with: those of Args
// and those that patches read.
func (t *trainer) compared() map[string]any {
	all := t.args.compared()
	for key, v := range t.tc.Module.Params.All() {
		if !readByPatch(t.tc, key) || v.IsNull() {
			continue
		}
		if number, ok := v.Float64(); ok {
			all[patchPrefix+key] = number
		} else {
			all[patchPrefix+key] = v.Text()
		}
	}
	return all
}

// logChanged logs the parameters that differ from those of the checkpoint. A parameter of Args that
// the checkpoint does not have did not exist in the version that saved it.
func (t *trainer) logChanged(c *checkpoint.Checkpoint, saved map[string]any) {
	if saved == nil { // saved by an older version of this program
		return
	}
	own := t.compared()
	var changed []string
	differ := func(key string) {
		if saved[key] != own[key] {
			changed = append(changed, fmt.Sprintf("%s %v instead of %v", strings.TrimPrefix(key, patchPrefix), shown(own[key]), shown(saved[key])))
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(saved), cmp.Compare) {
		if _, ok := own[key]; ok || strings.HasPrefix(key, patchPrefix) {
			differ(key)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(own), cmp.Compare) {
		if _, ok := saved[key]; !ok && strings.HasPrefix(key, patchPrefix) {
			differ(key)
		}
	}
	if changed != nil {
		t.tc.Log.Info(fmt.Sprintf("the run continues from %s with other parameters: %s", c.Path(), strings.Join(changed, ", ")))
	}
}
