package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/runtime/config/internal/scalar"
)

var (
	_ yaml.Marshaler = (*Experiment)(nil)
	_ json.Marshaler = (*Experiment)(nil)
)

// View returns what an experiment comes to: exp_meta_info, exp_root_path, module_order, modules with their parameters, the
// platform and, where there is one, the env block. Names limit it to these modules. It is for reading; [Experiment.Export]
// gives a document that loads.
func (e *Experiment) View(names ...string) *Map {
	meta := newMap(3)
	for _, key := range []string{"work_group", "user_name", "exp_name"} {
		meta.set(key, e.identity(key))
	}
	order := []Value{}
	modules := newMap(len(e.Modules))
	for _, module := range e.Modules {
		if len(names) == 0 || slices.Contains(names, module.Name) {
			order = append(order, Value{data: module.Name})
			modules.set(module.Name, Value{data: module.view()})
		}
	}
	view := newMap(6)
	view.set("exp_meta_info", Value{data: meta})
	view.set("exp_root_path", Value{data: e.RootPath()})
	view.set("module_order", Value{data: order})
	view.set("modules", Value{data: modules})
	view.set("platform", Value{data: e.Platform})
	if e.Env.Len() > 0 {
		view.set("env", Value{data: e.Env})
	}
	return view
}

func (m *Module) view() *Map {
	view := newMap(m.Private.Len() + 5)
	view.set("name", Value{data: m.Name})
	view.set("framework", m.head("framework", m.Framework))
	view.set("model", m.headers["model"])
	if m.TrainerClass != "" {
		view.set("trainer_class", m.head("trainer_class", m.TrainerClass))
	}
	for key, value := range m.Private.All() {
		view.set(key, value)
	}
	view.set("params", Value{data: m.Params})
	return view
}

// head returns a string that describes the module, with the origin it has in the module.
func (m *Module) head(key, text string) Value {
	value := m.headers[key]
	value.data = text
	return value
}

// identity returns one of the keys that say where results go, as text with its origin.
func (e *Experiment) identity(key string) Value {
	value, _ := e.Document.Lookup(key)
	text, _ := identifier(value)
	value.data = text
	return value
}

// Export returns an experiment whose modules are flat: loading it again, with the same platform preset at hand, gives the
// same values without any model or module preset.
func (e *Experiment) Export() *Map {
	document := newMap(7)
	for _, key := range []string{"work_group", "user_name", "exp_name", "workspace"} {
		document.set(key, e.identity(key))
	}
	if e.Env.Len() > 0 {
		document.set("env", Value{data: e.Env})
	}
	platform := newMap(2)
	config, _ := e.Platform.Lookup("config")
	platform.set("config", config)
	platform.set("overrides", Value{data: e.Platform.without("config")})
	document.set("platform", Value{data: platform})
	modules := newMap(len(e.Modules))
	for _, module := range e.Modules {
		modules.set(module.Name, Value{data: module.export()})
	}
	document.set("modules", Value{data: modules})
	return document
}

func (m *Module) export() *Map {
	flat := newMap(m.Private.Len() + 4)
	flat.set("framework", m.head("framework", m.Framework))
	if model, ok := m.Params.Lookup("model"); ok {
		flat.set("model", model)
	}
	if m.TrainerClass != "" {
		flat.set("trainer_class", m.head("trainer_class", m.TrainerClass))
	}
	for key, value := range m.Private.All() {
		flat.set(key, value)
	}
	flat.set("params", Value{data: m.Params})
	return flat
}

// ExportAs renders the content of [Experiment.Export]. What the format cannot hold, so that it would load back as something
// else, is an error that names the key.
func (e *Experiment) ExportAs(format Format) ([]byte, error) {
	document := e.Export()
	switch format {
	case FormatJSON:
		if err := fitsJSON(Value{data: document}, ""); err != nil {
			return nil, err
		}
	case FormatTOML:
		for name, value := range e.Env.All() {
			if value.IsNull() {
				return nil, &Error{Origin: value.Origin(), Path: joinPath("env", name), Problem: "TOML has no null", Hint: "write YAML or JSON"}
			}
		}
	}
	return Render(document, format, false)
}

// fitsJSON returns an error for the first value below v that JSON can only spell as text.
func fitsJSON(v Value, path string) error {
	switch d := v.data.(type) {
	case *Map:
		for key, value := range d.All() {
			if err := fitsJSON(value, joinPath(path, key)); err != nil {
				return err
			}
		}
		return nil
	case []Value:
		for i, value := range d {
			if err := fitsJSON(value, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case float64:
		if !math.IsInf(d, 0) && !math.IsNaN(d) {
			return nil
		}
	case scalar.Date, scalar.Time, []byte:
	default:
		return nil
	}
	return &Error{Origin: v.Origin(), Path: path, Problem: "JSON cannot hold " + v.describe(), Hint: "write YAML"}
}

// MarshalYAML implements yaml.Marshaler with the content of [Experiment.Export].
func (e *Experiment) MarshalYAML() (any, error) { return e.Export().node(false), nil }

// MarshalJSON implements json.Marshaler with the content of [Experiment.Export].
func (e *Experiment) MarshalJSON() ([]byte, error) { return e.Export().MarshalJSON() }
