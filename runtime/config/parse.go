package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/suggest"
)

// parser turns the loaded document into an experiment; it collects problems instead of stopping at
// the first.
type parser struct {
	*reader
	exp  *Experiment
	file string
	errs []error
}

func (p *parser) fail(err error) { p.errs = append(p.errs, err) }

// here returns the origin of the experiment file as a whole.
func (p *parser) here() document.Origin { return document.Origin{File: p.file} }

// require returns the value of a required key.
func (p *parser) require(m *document.Map, origin document.Origin, path, key string) (document.Value, bool) {
	value, ok := m.Lookup(key)
	if !ok {
		p.fail(&document.Error{Origin: origin, Path: document.JoinPath(path, key), Problem: "required key is missing"})
	}
	return value, ok
}

// identity reads the keys that say where results go.
func (p *parser) identity() {
	fields := []struct {
		key  string
		into *string
	}{
		{"work_group", &p.exp.WorkGroup}, {"user_name", &p.exp.UserName}, {"exp_name", &p.exp.ExpName}, {"workspace", &p.exp.Workspace},
	}
	for _, field := range fields {
		value, ok := p.require(p.exp.Document, p.here(), "", field.key)
		if !ok {
			continue
		}
		text, isText := value.Identifier()
		switch {
		case !isText:
			p.fail(document.WrongType(value, field.key, "a string", "quote it if it is a name"))
		case text == "":
			p.report.warn(value.Origin(), field.key, "value is empty", "results of different experiments may share a directory")
		case field.key != "workspace" && path.IsAbs(text):
			p.report.warn(value.Origin(), field.key, "absolute path replaces the workspace and everything before it", "")
		}
		*field.into = text
	}
}

// platformKeys must be present in a platform after merging.
var platformKeys = [...]string{
	"name", "num_nodes_env_key", "node_rank_env_key", "master_addr_env_key", "master_port_env_key", "gpus_per_node_env_key",
	"master_sink_level", "workspace",
}

// The platform of experiments that name none.
const (
	defaultPlatform  = "platform_azure.yaml"
	defaultSinkLevel = "INFO"
)

func (p *parser) platform() {
	block, given := p.exp.Document.Lookup("platform")
	config := document.StringValue(defaultPlatform).At(p.here())
	var overrides *document.Map
	if given {
		m, ok := block.Map()
		if !ok {
			p.fail(document.WrongType(block, "platform", "a mapping with the key config", ""))
			return
		}
		if config, ok = p.require(m, block.Origin(), "platform", "config"); !ok {
			return
		}
		if overrides, ok = p.overrides(m, "platform"); !ok {
			return
		}
		p.reportIgnored(m, "platform", "config", "overrides")
	} else {
		var defaults document.Builder
		defaults.Set("master_sink_level", document.StringValue(defaultSinkLevel))
		overrides = defaults.Map()
	}
	preset, err := p.preset(platformsDir, config, "platform.config")
	if err != nil {
		p.fail(err)
		return
	}
	merged := document.NewBuilder(preset.NullStrings())
	merged.Set("config", config)
	platform := merged.Map()
	hintUnknown(p.report, platform, overrides, "platform.overrides")
	p.exp.Platform = document.Merge(platform, overrides)
	for _, key := range platformKeys {
		p.require(p.exp.Platform, config.Origin(), "platform", key)
	}
}

// overrides reads an optional overrides block; null means none.
func (p *parser) overrides(m *document.Map, path string) (*document.Map, bool) {
	value, _ := m.Lookup("overrides")
	if value.IsNull() {
		return nil, true
	}
	overrides, ok := value.Map()
	if !ok {
		p.fail(document.WrongType(value, document.JoinPath(path, "overrides"), "a mapping", ""))
		return nil, false
	}
	return overrides.NullStrings(), true
}

func (p *parser) modules() {
	value, ok := p.require(p.exp.Document, p.here(), "", "modules")
	if !ok {
		return
	}
	modules, ok := value.Map()
	if !ok {
		p.fail(document.WrongType(value, "modules", "a mapping from module names to modules", ""))
		return
	}
	for name, block := range modules.All() {
		if !strings.Contains(name, "trainer") {
			p.fail(&document.Error{
				Origin: block.Origin(), Path: document.JoinPath("modules", name), Problem: fmt.Sprintf("unsupported module %q", name),
				Hint: `the name of a module contains "trainer", such as pre_trainer`,
			})
			continue
		}
		if module, ok := p.expand(name, block); ok {
			p.exp.Modules = append(p.exp.Modules, module)
		}
	}
}

// ignoredKeys reads the env block and reports top-level keys that nothing reads.
func (p *parser) ignoredKeys() {
	env, _ := p.exp.Document.Lookup("env")
	block, isMap := env.Map()
	if !isMap && !env.IsNull() {
		p.report.ignore("env", env, "want a mapping from names of variables to values")
	}
	for name, value := range block.All() {
		if kind := value.Kind(); kind == document.KindList || kind == document.KindMap {
			p.fail(document.WrongType(value, document.JoinPath("env", name), "the text of a variable", ""))
		}
	}
	p.exp.Env = block
	// An exported experiment also carries name and config_file.
	p.reportIgnored(p.exp.Document, "",
		"work_group", "user_name", "exp_name", "workspace", "env", "platform", "modules", "name", "config_file")
}

// reportIgnored reports the keys of m that are not known. One that is a parameter of a module lost
// to that parameter.
func (p *parser) reportIgnored(m *document.Map, path string, known ...string) {
	for key, value := range m.All() {
		if slices.Contains(known, key) {
			continue
		}
		hint := "parameters belong under modules.<name>.overrides"
		if question := suggest.Question(key, known); question != "" {
			hint = question
		} else if path != "" {
			hint = "known keys: " + strings.Join(known, " ")
		}
		if path != "" || !p.lostToParams(key, value, hint) {
			p.report.ignore(document.JoinPath(path, key), value, hint)
		}
	}
}

func (p *parser) lostToParams(key string, value document.Value, hint string) (lost bool) {
	for _, module := range p.exp.Modules {
		if kept, ok := module.Params.Lookup(key); ok {
			lost = true
			p.report.collide(module.Name, []Collision{{
				Key: key, Winner: SourceParams, Loser: SourceTopLevel, Kept: kept, Dropped: value, Hint: hint,
			}})
		}
	}
	return lost
}
