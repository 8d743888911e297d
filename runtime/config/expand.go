package config

import (
	"path"
	"slices"
	"strings"
)

// Module is one trainer of an experiment with its presets and overrides merged.
type Module struct {
	// Name is the key of the module in the experiment, such as pre_trainer.
	Name string
	// Framework names the training backend.
	Framework string
	// Config and Model are the preset names as the experiment writes them; empty for a module without presets.
	Config, Model string
	// TrainerClass selects a trainer other than the default of the framework and stage; empty means the default.
	TrainerClass string
	// Params are the merged parameters.
	Params *Map
	// Private holds the merged keys that begin with an underscore, which are no parameters.
	Private *Map
	// headers are the values that Framework, Model and TrainerClass were read from.
	headers map[string]Value
}

// moduleKeys are the keys of a module block that are not parameters.
var moduleKeys = []string{"name", "framework", "config", "model", "trainer_class"}

// expand builds the module called name from its block in the experiment.
func (p *parser) expand(name string, block Value) (*Module, bool) {
	keyPath := joinPath("modules", name)
	m, ok := block.Map()
	if !ok {
		p.fail(wrongType(block, keyPath, "a mapping with the keys framework, config and model", ""))
		return nil, false
	}
	value, ok := p.require(m, block.Origin(), keyPath, "framework")
	if !ok {
		return nil, false
	}
	framework, isText := identifier(value)
	if !isText || framework == "" || path.Base(framework) != framework || framework == ".." {
		p.fail(wrongType(value, joinPath(keyPath, "framework"), "the name of a framework", ""))
		return nil, false
	}
	// Exports of Primus call their modules exp.modules.<name>.
	if value, given := m.Lookup("name"); given && value.Text() != name && value.Text() != "exp.modules."+name {
		p.report.ignore(joinPath(keyPath, "name"), value, "the name of a module is its key")
	}
	module := &Module{Name: name}
	flat, ok := p.flatten(module, framework, m, keyPath)
	if !ok {
		return nil, false
	}
	return module, p.split(module, flat, keyPath)
}

// flatten merges presets and overrides into one flat mapping. A block without config is already flat.
func (p *parser) flatten(module *Module, framework string, m *Map, keyPath string) (*Map, bool) {
	config, hasConfig := m.Lookup("config")
	model, hasModel := m.Lookup("model")
	if !hasConfig {
		if overrides, ok := m.Lookup("overrides"); ok {
			p.report.ignore(joinPath(keyPath, "overrides"), overrides, "a module without config has no presets to override: write the keys beside framework")
		}
		module.Model, _ = identifier(model)
		return nullStrings(m), true
	}
	if !hasModel {
		p.require(m, config.Origin(), keyPath, "model")
		return nil, false
	}
	modulePreset, err := p.preset(path.Join(modulesDir, framework), config, joinPath(keyPath, "config"))
	if err != nil {
		p.fail(err)
	}
	modelPreset, modelErr := p.preset(path.Join(modelsDir, framework), model, joinPath(keyPath, "model"))
	if modelErr != nil {
		p.fail(modelErr)
	}
	overrides, ok := p.overrides(m, keyPath)
	if err != nil || modelErr != nil || !ok {
		return nil, false
	}
	module.Config, _ = identifier(config)
	module.Model, _ = identifier(model)

	attributes := p.attributes(module.Name, m)
	flat := p.underlay(module.Name, m, attributes, modulePreset)
	flat = p.addModel(module.Name, flat, attributes, nullStrings(modelPreset), model)
	hintUnknown(p.report, flat, overrides, joinPath(keyPath, "overrides"))
	if value, given := overrides.Lookup("name"); given {
		p.report.ignore(joinPath(keyPath, "overrides.name"), value, "the name of a module is its key")
	}
	if value, given := overrides.Lookup("framework"); given {
		p.report.warn(value.Origin(), joinPath(keyPath, "overrides.framework"), "override comes after the presets were chosen",
			"set framework beside overrides instead")
	}
	return Merge(flat, overrides), true
}

// attributes returns the keys of a module block that are parameters although they stand beside overrides.
func (p *parser) attributes(name string, m *Map) *Map {
	attributes := newMap(0)
	for key, value := range nullStrings(m).All() {
		switch {
		case key == "params" || strings.HasPrefix(key, "_"):
			p.report.ignore(joinPath("modules."+name, key), value, "parameters belong under overrides")
		case key == "overrides" || key != "trainer_class" && slices.Contains(moduleKeys, key):
		default:
			attributes.set(key, value)
		}
	}
	return attributes
}

// underlay starts with the module preset and adds attributes where the preset has none.
func (p *parser) underlay(name string, m, attributes, preset *Map) *Map {
	flat := nullStrings(preset.without("name"))
	framework, _ := m.Lookup("framework")
	if named, ok := flat.Lookup("framework"); ok {
		if !named.Equal(framework) {
			p.report.collide(name, []Collision{{
				Key: "framework", Winner: SourceExperiment, Loser: SourceModulePreset, Kept: framework, Dropped: named,
			}})
		}
		framework = framework.replacing(named)
	}
	flat.set("framework", framework)
	flat, collisions := addMissing(flat, attributes, SourceModulePreset, SourceExperiment)
	p.report.collide(name, collisions)
	return flat
}

// addModel adds the model preset key by key; keys that are already there stay.
func (p *parser) addModel(name string, flat, attributes, preset *Map, model Value) *Map {
	preset = preset.without("name")
	if _, ok := preset.Lookup("model"); !ok {
		preset.set("model", model)
	}
	flat, collisions := addMissing(flat, preset, SourceModulePreset, SourceModelPreset)
	for i, c := range collisions {
		if ours, ok := attributes.Lookup(c.Key); ok && ours.origin == c.Kept.origin {
			collisions[i].Winner = SourceExperiment
		}
	}
	p.report.collide(name, collisions)
	return flat
}

// split separates the parameters from the keys that describe the module. A params mapping is the base of the parameters.
func (p *parser) split(module *Module, flat *Map, keyPath string) bool {
	base, _ := flat.Lookup("params")
	params, ok := base.Map()
	if !ok && !base.IsNull() {
		p.fail(wrongType(base, joinPath(keyPath, "params"), "a mapping", ""))
		return false
	}
	module.Params, module.Private = params.clone(flat.Len()), newMap(0)
	for key, value := range flat.All() {
		switch {
		case strings.HasPrefix(key, "_"):
			module.Private.set(key, value)
		case key == "config" && module.Config != "":
			p.report.ignore(joinPath(keyPath, key), value, "the key is reserved: rename it in the preset")
		case key == "params" || slices.Contains(moduleKeys, key):
		default:
			module.Params.set(key, value)
		}
	}
	model, given := flat.Lookup("model")
	if given {
		module.Params.set("model", model)
	}
	framework, _ := flat.Lookup("framework")
	trainer, _ := flat.Lookup("trainer_class")
	module.headers = map[string]Value{"framework": framework, "trainer_class": trainer, "model": model}
	if module.Framework, ok = identifier(framework); !ok {
		p.fail(wrongType(framework, joinPath(keyPath, "framework"), "the name of a framework", ""))
		return false
	}
	if module.TrainerClass, ok = identifier(trainer); !ok && !trainer.IsNull() {
		p.fail(wrongType(trainer, joinPath(keyPath, "trainer_class"), "the name of a trainer", ""))
		return false
	}
	return true
}
