package config

import (
	"path"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
)

// Module is one trainer of an experiment with its presets and overrides merged.
type Module struct {
	// Name is the key of the module in the experiment, such as pre_trainer.
	Name string
	// Framework names the training backend.
	Framework string
	// Config and Model are the preset names as the experiment writes them; empty for a module without
	// presets.
	Config, Model string
	// TrainerClass selects a trainer other than the default of the framework and stage; empty means
	// the default.
	TrainerClass string
	// Params are the merged parameters.
	Params *document.Map
	// Private holds the merged keys that begin with an underscore, which are not parameters.
	Private *document.Map
	// headers holds the values that Framework, Model and TrainerClass were read from.
	headers map[string]document.Value
}

// moduleKeys are the keys of a module block that are not parameters.
var moduleKeys = []string{"name", "framework", "config", "model", "trainer_class"}

// expand builds the module called name from its block in the experiment.
func (p *parser) expand(name string, block document.Value) (*Module, bool) {
	keyPath := document.JoinPath("modules", name)
	m, ok := block.Map()
	if !ok {
		p.fail(document.WrongType(block, keyPath, "a mapping with the keys framework, config and model", ""))
		return nil, false
	}
	value, ok := p.require(m, block.Origin(), keyPath, "framework")
	if !ok {
		return nil, false
	}
	framework, isText := value.Identifier()
	if !isText || framework == "" || path.Base(framework) != framework || framework == ".." {
		p.fail(document.WrongType(value, document.JoinPath(keyPath, "framework"), "the name of a framework", ""))
		return nil, false
	}
	// In exports of Primus the names of modules are exp.modules.<name>.
	if value, given := m.Lookup("name"); given && value.Text() != name && value.Text() != "exp.modules."+name {
		p.report.ignore(document.JoinPath(keyPath, "name"), value, "the name of a module is its key")
	}
	module := &Module{Name: name}
	flat, ok := p.flatten(module, framework, m, keyPath)
	if !ok {
		return nil, false
	}
	return module, p.split(module, flat, keyPath)
}

// flatten merges presets and overrides into one flat mapping. A block without config is already
// flat.
func (p *parser) flatten(module *Module, framework string, m *document.Map, keyPath string) (*document.Map, bool) {
	config, hasConfig := m.Lookup("config")
	model, hasModel := m.Lookup("model")
	if !hasConfig {
		if overrides, ok := m.Lookup("overrides"); ok {
			p.report.ignore(document.JoinPath(keyPath, "overrides"), overrides, "a module without config has no presets to override: write the keys beside framework")
		}
		module.Model, _ = model.Identifier()
		return m.NullStrings(), true
	}
	if !hasModel {
		p.require(m, config.Origin(), keyPath, "model")
		return nil, false
	}
	modulePreset, err := p.preset(path.Join(modulesDir, framework), config, document.JoinPath(keyPath, "config"))
	if err != nil {
		p.fail(err)
	}
	modelPreset, modelErr := p.preset(path.Join(modelsDir, framework), model, document.JoinPath(keyPath, "model"))
	if modelErr != nil {
		p.fail(modelErr)
	}
	overrides, ok := p.overrides(m, keyPath)
	if err != nil || modelErr != nil || !ok {
		return nil, false
	}
	module.Config, _ = config.Identifier()
	module.Model, _ = model.Identifier()

	attributes := p.attributes(module.Name, m)
	flat := p.underlay(module.Name, m, attributes, modulePreset)
	flat = p.addModel(module.Name, flat, attributes, modelPreset.NullStrings(), model)
	hintUnknown(p.report, flat, overrides, document.JoinPath(keyPath, "overrides"))
	if value, given := overrides.Lookup("name"); given {
		p.report.ignore(document.JoinPath(keyPath, "overrides.name"), value, "the name of a module is its key")
	}
	if value, given := overrides.Lookup("framework"); given {
		p.report.warn(value.Origin(), document.JoinPath(keyPath, "overrides.framework"), "override comes after the presets were chosen",
			"set framework beside overrides instead")
	}
	return document.Merge(flat, overrides), true
}

// attributes returns the keys of a module block that are parameters although they are beside
// overrides.
func (p *parser) attributes(name string, m *document.Map) *document.Map {
	var attributes document.Builder
	for key, value := range m.NullStrings().All() {
		switch {
		case key == "params" || strings.HasPrefix(key, "_"):
			p.report.ignore(document.JoinPath("modules."+name, key), value, "parameters belong under overrides")
		case key == "overrides" || key != "trainer_class" && slices.Contains(moduleKeys, key):
		default:
			attributes.Set(key, value)
		}
	}
	return attributes.Map()
}

// underlay starts with the module preset and adds attributes where the preset has none.
func (p *parser) underlay(name string, m, attributes, preset *document.Map) *document.Map {
	preset = preset.Without("name").NullStrings()
	framework, _ := m.Lookup("framework")
	if named, ok := preset.Lookup("framework"); ok {
		if !named.Equal(framework) {
			p.report.collide(name, []Collision{{
				Key: "framework", Winner: SourceExperiment, Loser: SourceModulePreset, Kept: framework, Dropped: named,
			}})
		}
		framework = framework.Replacing(named)
	}
	flat := document.NewBuilder(preset)
	flat.Set("framework", framework)
	merged, collisions := addMissing(flat.Map(), attributes, SourceModulePreset, SourceExperiment)
	p.report.collide(name, collisions)
	return merged
}

// addModel adds the model preset key by key; keys that are already there stay.
func (p *parser) addModel(name string, flat, attributes, preset *document.Map, model document.Value) *document.Map {
	preset = preset.Without("name")
	if _, ok := preset.Lookup("model"); !ok {
		named := document.NewBuilder(preset)
		named.Set("model", model)
		preset = named.Map()
	}
	flat, collisions := addMissing(flat, preset, SourceModulePreset, SourceModelPreset)
	for i, c := range collisions {
		if ours, ok := attributes.Lookup(c.Key); ok && ours.Origin() == c.Kept.Origin() {
			collisions[i].Winner = SourceExperiment
		}
	}
	p.report.collide(name, collisions)
	return flat
}

// addMissing returns base with those keys of extra that base lacks, whole values and not deeper.
// For each key that both have with different values there is a collision, in which winner names
// base and loser extra; a kept value remembers the one of extra as replaced. Neither argument is
// changed.
func addMissing(base, extra *document.Map, winner, loser Source) (*document.Map, []Collision) {
	merged := document.NewBuilder(base)
	var collisions []Collision
	for key, value := range extra.All() {
		kept, taken := base.Lookup(key)
		if !taken {
			merged.Set(key, value)
			continue
		}
		merged.Set(key, kept.Replacing(value))
		if !kept.Equal(value) {
			collisions = append(collisions, Collision{Key: key, Winner: winner, Loser: loser, Kept: kept, Dropped: value})
		}
	}
	return merged.Map(), collisions
}

// split separates the parameters from the keys that describe the module. A params mapping is the
// base of the parameters.
func (p *parser) split(module *Module, flat *document.Map, keyPath string) bool {
	base, _ := flat.Lookup("params")
	params, ok := base.Map()
	if !ok && !base.IsNull() {
		p.fail(document.WrongType(base, document.JoinPath(keyPath, "params"), "a mapping", ""))
		return false
	}
	parameters, private := document.NewBuilder(params), &document.Builder{}
	for key, value := range flat.All() {
		switch {
		case strings.HasPrefix(key, "_"):
			private.Set(key, value)
		case key == "config" && module.Config != "":
			p.report.ignore(document.JoinPath(keyPath, key), value, "the key is reserved: rename it in the preset")
		case key == "params" || slices.Contains(moduleKeys, key):
		default:
			parameters.Set(key, value)
		}
	}
	model, given := flat.Lookup("model")
	if given {
		parameters.Set("model", model)
	}
	module.Params, module.Private = parameters.Map(), private.Map()
	framework, _ := flat.Lookup("framework")
	trainer, _ := flat.Lookup("trainer_class")
	module.headers = map[string]document.Value{"framework": framework, "trainer_class": trainer, "model": model}
	if module.Framework, ok = framework.Identifier(); !ok {
		p.fail(document.WrongType(framework, document.JoinPath(keyPath, "framework"), "the name of a framework", ""))
		return false
	}
	if module.TrainerClass, ok = trainer.Identifier(); !ok && !trainer.IsNull() {
		p.fail(document.WrongType(trainer, document.JoinPath(keyPath, "trainer_class"), "the name of a trainer", ""))
		return false
	}
	return true
}
