package native

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/megatronargs"
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/unsupported"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/runtime/backend"
)

// ConvertConfig returns the parameters of the trainer unchanged. A parameter that neither the
// trainer nor Megatron has is an error, or a warning if the experiment was loaded with
// [config.Options.Lenient]. One of Megatron that changes no result is a warning, and so is a key or
// token for some other program.
func (adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	unknown, err := unknownParams(tc)
	if err != nil {
		return nil, nil, err
	}
	var warnings []document.Warning
	var faults []error
	var left []string
	for _, u := range unknown {
		left = append(left, u.Path)
		if !noEffect(tc, u) {
			continue
		}
		hint := ""
		if u.Path == "model" {
			hint = "the experiment chooses the model preset"
		} else if name := meant(u); name != "" {
			hint = "did you mean " + strconv.Quote(name) + "?"
		}
		_, ofMegatron := megatronargs.Defaults()[u.Path]
		if ofMegatron || secret.Name(u.Path) || tc.Experiment != nil && tc.Experiment.Lenient {
			warnings = append(warnings, document.Warning{Origin: u.Origin, Path: u.Path, Message: noParameter + ", so it has no effect", Hint: hint})
			continue
		}
		faults = append(faults, &document.Error{Origin: u.Origin, Path: u.Path, Problem: noParameter, Hint: cmp.Or(hint, "primus config parameters lists them; --strict-config=false ignores it")})
	}
	return backend.NewArgs(tc.Module.Params, left...), warnings, errors.Join(faults...)
}

const noParameter = "the native backend has no such parameter"

// namesElsewhere returns names that other trainers have for parameters, and the parameters.
func namesElsewhere() [][2]string {
	return [][2]string{
		{"learning_rate", "lr"}, {"max_lr", "lr"}, {"min_learning_rate", "min_lr"},
		{"max_steps", "train_iters"}, {"num_steps", "train_iters"}, {"max_iters", "train_iters"}, {"steps", "train_iters"}, {"iterations", "train_iters"},
		{"warmup_steps", "lr_warmup_iters"}, {"warmup_iters", "lr_warmup_iters"}, {"lr_scheduler_type", "lr_decay_style"}, {"lr_schedule", "lr_decay_style"},
		{"train_batch_size", "global_batch_size"}, {"per_device_train_batch_size", "micro_batch_size"}, {"local_batch_size", "micro_batch_size"},
		{"max_grad_norm", "clip_grad"}, {"grad_clip", "clip_grad"}, {"gradient_clipping", "clip_grad"},
		{"n_layer", "num_layers"}, {"n_layers", "num_layers"}, {"num_hidden_layers", "num_layers"},
		{"n_head", "num_attention_heads"}, {"n_heads", "num_attention_heads"}, {"num_heads", "num_attention_heads"},
		{"n_kv_heads", "num_query_groups"}, {"num_key_value_heads", "num_query_groups"},
		{"n_embd", "hidden_size"}, {"d_model", "hidden_size"}, {"dim", "hidden_size"},
		{"intermediate_size", "ffn_hidden_size"}, {"d_ff", "ffn_hidden_size"},
		{"block_size", "seq_length"}, {"context_length", "seq_length"}, {"seq_len", "seq_length"}, {"max_seq_len", "seq_length"}, {"sequence_length", "seq_length"},
		{"rope_theta", "rotary_base"}, {"rms_norm_eps", "norm_epsilon"}, {"dropout", "hidden_dropout"},
		{"tokenizer", "tokenizer_model"}, {"tokenizer_path", "tokenizer_model"}, {"dataset", "train_data_path"}, {"dataset_path", "train_data_path"}, {"data_dir", "train_data_path"},
		{"save_steps", "save_interval"}, {"eval_steps", "eval_interval"}, {"logging_steps", "log_interval"}, {"random_seed", "seed"},
		{"resume_from_checkpoint", "load"}, {"output_dir", "save"}, {"init_from", "load_hf"},
	}
}

// meant returns the parameter that an unknown one stands for: by the name it has in other trainers,
// or the nearest one; "" if there is none.
func meant(u document.UnknownKey) string {
	elsewhere := namesElsewhere()
	names := make([]string, len(elsewhere))
	for i, e := range elsewhere {
		if names[i] = e[0]; strings.EqualFold(strings.NewReplacer("-", "_", " ", "_").Replace(u.Path), e[0]) {
			return e[1]
		}
	}
	if u.Nearest != "" {
		return u.Nearest
	}
	if near, ok := suggest.Nearest(u.Path, names); ok {
		return elsewhere[slices.Index(names, near)][1]
	}
	return ""
}

// unknownParams returns the parameters of the module that Args does not have.
func unknownParams(tc *backend.TrainContext) ([]document.UnknownKey, error) {
	return document.Decode(tc.Module.Params.Without(architecture.WindowsParam), &Args{}) // which may be a number
}

// noEffect reports whether a parameter that Args does not have is without any effect, since nothing
// reads it.
func noEffect(tc *backend.TrainContext, u document.UnknownKey) bool {
	model := u.Path == "model" && u.Origin.Token == "" // of the experiment
	return !model && !backend.IsRuntimeParam(u.Path) && !unsupported.Known(u.Path) && !readByPatch(tc, u.Path)
}

func readByPatch(tc *backend.TrainContext, name string) bool {
	return tc.PatchKey != nil && tc.PatchKey(name)
}

// refusals returns an error for each parameter that asks for something that the trainer does not
// do.
func refusals(tc *backend.TrainContext, a *Args) (refused, err error) {
	unknown, err := unknownParams(tc)
	if err != nil {
		return nil, err
	}
	run := unsupported.Run{Config: a.Config}
	var faults []error
	for _, u := range unknown {
		if v, given := tc.Module.Params.Lookup(u.Path); given && !readByPatch(tc, u.Path) {
			faults = append(faults, unsupported.Check(u.Path, v, run))
		}
	}
	return errors.Join(faults...), nil
}

// ignored returns the names of the parameters without effect, sorted.
func ignored(tc *backend.TrainContext) []string {
	unknown, _ := unknownParams(tc) // ConvertConfig has returned the error
	var names []string
	for _, u := range unknown {
		if noEffect(tc, u) {
			names = append(names, u.Path)
		}
	}
	slices.Sort(names)
	return names
}
