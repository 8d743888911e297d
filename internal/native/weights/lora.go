package weights

import (
	"slices"

	"github.com/primus-fl/primus/internal/native/model"
)

// The files of adapters.
const (
	ConfigFile  = "adapter_config.json"
	WeightsFile = "adapter_model.safetensors"
)

// prefix begins the names of adapters in PEFT's files.
const prefix = "base_model.model."

// Named returns views of the adapters of a model under their names in PEFT's files.
func Named(m *model.Model) []model.Named {
	all := slices.Clone(m.Adapters())
	for i := range all {
		all[i].Name = prefix + all[i].Name
	}
	return all
}

// Places returns where the adapters of a model lie, under the same names.
func Places(m *model.Model) []model.Place {
	all := m.Places()
	for i := range all {
		all[i].Name = prefix + all[i].Name
	}
	return all
}

// Config returns the content of adapter_config.json for the adapters of an architecture; base is
// the path or the name of the weights that they adapt, "" if it is not known.
func Config(c model.Config, base string) map[string]any {
	alpha := c.LoRA.Alpha
	if alpha == 0 {
		alpha = float64(c.Rank)
	}
	targets := slices.Clone(c.Targets)
	if targets == nil {
		targets = c.AdapterTargets()
	}
	slices.Sort(targets)
	var from any
	if base != "" {
		from = base
	}
	inOut := c.HFConfig()["model_type"] == "gpt2" // whose projections are stored as [in out]
	return map[string]any{
		"peft_type":               "LORA",
		"task_type":               "CAUSAL_LM",
		"base_model_name_or_path": from,
		"r":                       c.Rank,
		"lora_alpha":              alpha,
		"lora_dropout":            c.LoRA.Dropout,
		"target_modules":          slices.Compact(targets),
		"bias":                    "none",
		"fan_in_fan_out":          inOut,
		"inference_mode":          true,
		"init_lora_weights":       true,
		"use_rslora":              false,
		"use_dora":                false,
		"modules_to_save":         nil,
	}
}
