package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/runtime/config/document"
)

var (
	_ yaml.Marshaler = (*Experiment)(nil)
	_ json.Marshaler = (*Experiment)(nil)
)

// View returns what an experiment comes to: exp_meta_info, exp_root_path, module_order, modules with their parameters, the
// platform and, where there is one, the env block. Names limit it to these modules. It is for reading; [Experiment.Export]
// gives a document that loads.
func (e *Experiment) View(names ...string) *document.Map {
	var meta, modules, view document.Builder
	for _, key := range []string{"work_group", "user_name", "exp_name"} {
		meta.Set(key, e.identity(key))
	}
	order := []document.Value{}
	for _, module := range e.Modules {
		if len(names) == 0 || slices.Contains(names, module.Name) {
			order = append(order, document.StringValue(module.Name))
			modules.Set(module.Name, document.MapValue(module.view()))
		}
	}
	view.Set("exp_meta_info", document.MapValue(meta.Map()))
	view.Set("exp_root_path", document.StringValue(e.RootPath()))
	view.Set("module_order", document.ListValue(order))
	view.Set("modules", document.MapValue(modules.Map()))
	view.Set("platform", document.MapValue(e.Platform))
	if e.Env.Len() > 0 {
		view.Set("env", document.MapValue(e.Env))
	}
	return view.Map()
}

func (m *Module) view() *document.Map {
	var view document.Builder
	view.Set("name", document.StringValue(m.Name))
	view.Set("framework", m.head("framework", m.Framework))
	view.Set("model", m.headers["model"])
	if m.TrainerClass != "" {
		view.Set("trainer_class", m.head("trainer_class", m.TrainerClass))
	}
	for key, value := range m.Private.All() {
		view.Set(key, value)
	}
	view.Set("params", document.MapValue(m.Params))
	return view.Map()
}

// head returns a string that describes the module, with the origin it has in the module.
func (m *Module) head(key, text string) document.Value {
	return m.headers[key].WithString(text)
}

// identity returns one of the keys that say where results go, as text with its origin.
func (e *Experiment) identity(key string) document.Value {
	value, _ := e.Document.Lookup(key)
	text, _ := value.Identifier()
	return value.WithString(text)
}

// Export returns an experiment whose modules are flat: loading it again, with the same platform preset at hand, gives the
// same values without any model or module preset.
func (e *Experiment) Export() *document.Map {
	var flat, platform, modules document.Builder
	for _, key := range placeKeys {
		flat.Set(key, e.identity(key))
	}
	if e.Env.Len() > 0 {
		flat.Set("env", document.MapValue(e.Env))
	}
	config, _ := e.Platform.Lookup("config")
	platform.Set("config", config)
	platform.Set("overrides", document.MapValue(e.Platform.Without("config")))
	flat.Set("platform", document.MapValue(platform.Map()))
	for _, module := range e.Modules {
		modules.Set(module.Name, document.MapValue(module.export()))
	}
	flat.Set("modules", document.MapValue(modules.Map()))
	return flat.Map()
}

func (m *Module) export() *document.Map {
	var flat document.Builder
	flat.Set("framework", m.head("framework", m.Framework))
	if model, ok := m.Params.Lookup("model"); ok {
		flat.Set("model", model)
	}
	if m.TrainerClass != "" {
		flat.Set("trainer_class", m.head("trainer_class", m.TrainerClass))
	}
	for key, value := range m.Private.All() {
		flat.Set(key, value)
	}
	flat.Set("params", document.MapValue(m.Params))
	return flat.Map()
}

// ExportAs renders the content of [Experiment.Export]. What the format cannot hold, so that it would load back as something
// else, is an error that names the key.
func (e *Experiment) ExportAs(format document.Format) ([]byte, error) {
	exported := e.Export()
	switch format {
	case document.FormatJSON:
		if err := fitsJSON(document.MapValue(exported), ""); err != nil {
			return nil, err
		}
	case document.FormatTOML:
		for name, value := range e.Env.All() {
			if value.IsNull() {
				return nil, &document.Error{Origin: value.Origin(), Path: document.JoinPath("env", name), Problem: "TOML has no null", Hint: "write YAML or JSON"}
			}
		}
	}
	return document.Render(exported, format, false)
}

// fitsJSON returns an error for the first value below v that JSON can only spell as text.
func fitsJSON(v document.Value, path string) error {
	switch v.Kind() {
	case document.KindMap:
		fields, _ := v.Map()
		for key, value := range fields.All() {
			if err := fitsJSON(value, document.JoinPath(path, key)); err != nil {
				return err
			}
		}
		return nil
	case document.KindList:
		items, _ := v.List()
		for i, value := range items {
			if err := fitsJSON(value, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case document.KindFloat:
		if f, _ := v.Float64(); !math.IsInf(f, 0) && !math.IsNaN(f) {
			return nil
		}
	case document.KindDate, document.KindTime, document.KindBytes:
	default:
		return nil
	}
	return &document.Error{Origin: v.Origin(), Path: path, Problem: "JSON cannot hold " + v.Describe(), Hint: "write YAML"}
}

// MarshalYAML implements yaml.Marshaler with the content of [Experiment.Export].
func (e *Experiment) MarshalYAML() (any, error) { return e.Export().MarshalYAML() }

// MarshalJSON implements json.Marshaler with the content of [Experiment.Export].
func (e *Experiment) MarshalJSON() ([]byte, error) { return e.Export().MarshalJSON() }
