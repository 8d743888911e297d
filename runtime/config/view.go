package config

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/document"
)

var _ json.Marshaler = (*Experiment)(nil)

// View returns the resolved experiment: exp_meta_info, exp_root_path, module_order, modules with
// their parameters, the platform and, where there is one, the env block. Names limit it to these
// modules. It is for reading; [Experiment.Export] gives a document that loads.
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

// Export returns an experiment whose modules are flat: loading it again, with the same platform
// preset at hand, gives the same values without any model or module preset.
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

// ExportAs renders the content of [Experiment.Export]. What the format cannot hold, so that it
// would load back as something else, is an error that names the key.
func (e *Experiment) ExportAs(format document.Renderer) ([]byte, error) {
	exported := e.Export()
	text, err := format.Render(exported, false)
	if err != nil {
		return nil, err
	}
	loaded, _, err := format.Load(context.Background(), "export", text)
	if err != nil {
		return nil, fmt.Errorf("config: the exported %s does not load: %w", format.Name(), err)
	}
	loaded, _, err = document.Substitute(loaded, func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, fmt.Errorf("config: the exported %s does not load: %w", format.Name(), err)
	}
	if again, ok := loaded.Map(); ok {
		return text, firstLost(format, exported, again)
	}
	return nil, fmt.Errorf("config: the exported %s loads as %s, want a mapping", format.Name(), loaded.Describe())
}

// firstLost returns an error for the first value that a format did not keep.
func firstLost(format document.Renderer, exported, again *document.Map) error {
	for _, key := range append(exported.Keys(), again.Keys()...) {
		was, _ := exported.Lookup(key)
		is, _ := again.Lookup(key)
		if lost, path, found := differing(was, is, key, key != "env"); found {
			return &document.Error{
				Origin: lost.Origin(), Path: path, Problem: fmt.Sprintf("%s cannot hold %s", format.Name(), lost.Describe()),
				Hint: "export another format, such as yaml",
			}
		}
	}
	return nil
}

// differing returns the first value below a that b does not have, with its path. Loading an
// experiment makes null of the string "null", outside of lists and the env block.
func differing(a, b document.Value, path string, nulls bool) (lost document.Value, at string, found bool) {
	if ours, ok := a.Map(); ok {
		theirs, _ := b.Map()
		for key, value := range ours.All() {
			other, _ := theirs.Lookup(key)
			if lost, at, found = differing(value, other, document.JoinPath(path, key), nulls); found {
				return lost, at, true
			}
		}
		return a, path, b.Kind() != document.KindMap || ours.Len() != theirs.Len()
	}
	if ours, ok := a.List(); ok {
		theirs, _ := b.List()
		if len(ours) != len(theirs) {
			return a, path, true
		}
		for i, value := range ours {
			if lost, at, found = differing(value, theirs[i], fmt.Sprintf("%s[%d]", path, i), false); found {
				return lost, at, true
			}
		}
		return a, path, b.Kind() != document.KindList
	}
	text, _ := b.Str()
	return a, path, !a.Equal(b) && !(nulls && a.IsNull() && text == "null")
}

// MarshalJSON implements json.Marshaler with the content of [Experiment.Export].
func (e *Experiment) MarshalJSON() ([]byte, error) { return e.Export().MarshalJSON() }
