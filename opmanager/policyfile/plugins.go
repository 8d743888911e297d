package policyfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// The keys of a document that are about plugins.
const (
	FieldPluginModules  oppolicy.Field = "plugin_modules"
	FieldPluginSHA256   oppolicy.Field = "plugin_sha256"
	FieldIsolatePlugins oppolicy.Field = "isolate_plugins"
)

var pluginFields = []oppolicy.Field{FieldPluginModules, FieldPluginSHA256, FieldIsolatePlugins}

// Plugins says which shared libraries bring ops of vendors, and how far they are trusted. The
// program that opens libraries reads it; the ranks of impls do not depend on it.
type Plugins struct {
	// Modules are the libraries, in order: paths, or names of files that are looked
	// up in the directories for plugins.
	Modules []string
	// SHA256 lists the checksums, in lower-case hexadecimal, of the libraries that may be
	// opened; nil allows any, an empty list none.
	SHA256 []string
	// Isolate names the modules that run in a process of their own; "*" stands for all.
	Isolate []string
	// Sources says for each key that was set where its value came from.
	Sources map[oppolicy.Field]string
}

// ApplyPlugins returns p with the values that the layer gives for plugins. A nil layer changes
// nothing.
func (l *Layer) ApplyPlugins(p Plugins) Plugins {
	if l == nil {
		return p
	}
	for _, field := range pluginFields {
		source, given := l.plugins.Sources[field]
		switch {
		case !given:
			continue
		case field == FieldPluginModules:
			p.Modules = l.plugins.Modules
		case field == FieldPluginSHA256:
			p.SHA256 = l.plugins.SHA256
		default:
			p.Isolate = l.plugins.Isolate
		}
		p.setSource(field, source)
	}
	return p
}

// SetModules sets the libraries from a text with commas, such as that of TE_FL_PLUGIN_MODULES.
// Empty parts are left out.
func (p *Plugins) SetModules(value, source string) error {
	var modules []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			modules = append(modules, name)
		}
	}
	if len(modules) == 0 {
		return &oppolicy.Error{Source: source, Value: value, Problem: "no plugin between the commas, want libraries such as ./libacme_ops.so"}
	}
	p.Modules = modules
	p.setSource(FieldPluginModules, source)
	return nil
}

// SetIsolate sets which libraries run in a process of their own: all or none with a
// switch as Policy.SetStrict takes, or those in a text with commas.
func (p *Plugins) SetIsolate(value, source string) error {
	var toggle oppolicy.Policy
	if toggle.SetStrict(value, source) == nil {
		p.Isolate = nil
		if toggle.Strict {
			p.Isolate = []string{"*"}
		}
		p.setSource(FieldIsolatePlugins, source)
		return nil
	}
	var names Plugins
	if err := names.SetModules(value, source); err != nil {
		return err
	}
	p.Isolate = names.Modules
	p.setSource(FieldIsolatePlugins, source)
	return nil
}

// Source returns where the value of a key came from.
func (p *Plugins) Source(field oppolicy.Field) string {
	if source, given := p.Sources[field]; given {
		return source
	}
	return "default"
}

// setSource does not change the map, which other copies may share.
func (p *Plugins) setSource(field oppolicy.Field, source string) {
	next := maps.Clone(p.Sources)
	if next == nil {
		next = map[oppolicy.Field]string{}
	}
	next[field] = source
	p.Sources = next
}

func (r *reader) pluginModules(key string, v document.Value) (ok bool) {
	r.plugins.Modules, ok = r.modules(key, v)
	return ok
}

// modules reads a list of libraries, or one text with commas.
func (r *reader) modules(key string, v document.Value) ([]string, bool) {
	var p Plugins
	switch v.Kind() {
	case document.KindString:
		ok := r.accept(key, v, p.SetModules)
		return p.Modules, ok
	case document.KindList:
		items, _ := v.List()
		return r.texts(key, items, "one library, such as /opt/acme/libacme_ops.so", func(text string) error {
			if strings.Contains(text, ",") {
				return errors.New("has a comma inside; give each library by itself")
			}
			return nil
		})
	}
	r.fail(v.Origin(), key, "given %s, want a list of libraries, such as [/opt/acme/libacme_ops.so]; write [] for none", v.Describe())
	return nil, false
}

func (r *reader) pluginSHA256(key string, v document.Value) (ok bool) {
	if v.Kind() != document.KindList {
		r.fail(v.Origin(), key, "given %s, want a list of checksums; write [] to allow no library", v.Describe())
		return false
	}
	items, _ := v.List()
	for i, item := range items {
		if item.Kind() == document.KindInt { // a checksum of digits only
			items[i] = item.WithString(item.Text())
		}
	}
	r.plugins.SHA256, ok = r.texts(key, items, "a SHA-256 checksum of 64 hexadecimal digits", func(text string) error {
		if sum, err := hex.DecodeString(text); err != nil || len(sum) != 32 {
			return errors.New("is not a SHA-256 checksum, which has 64 hexadecimal digits; sha256sum prints it")
		}
		return nil
	})
	for i, sum := range r.plugins.SHA256 {
		r.plugins.SHA256[i] = strings.ToLower(sum)
	}
	return ok
}

func (r *reader) isolatePlugins(key string, v document.Value) (ok bool) {
	switch v.Kind() {
	case document.KindBool, document.KindInt:
		var on bool
		on, ok = r.toggle(key, v)
		if r.plugins.Isolate = nil; on {
			r.plugins.Isolate = []string{"*"}
		}
		return ok
	case document.KindString:
		return r.accept(key, v, r.plugins.SetIsolate)
	}
	r.plugins.Isolate, ok = r.modules(key, v)
	return ok
}

// texts reads a list whose items are texts that check accepts. The result of an empty
// list is empty, not nil.
func (r *reader) texts(key string, items []document.Value, want string, check func(string) error) ([]string, bool) {
	texts, before := make([]string, 0, len(items)), len(r.faults)
	for i, item := range items {
		name, text := fmt.Sprintf("%s[%d]", key, i), strings.TrimSpace(item.Text())
		if item.Kind() != document.KindString || text == "" {
			r.fail(item.Origin(), name, "given %s, want %s", item.Describe(), want)
		} else if err := check(text); err != nil {
			r.fail(item.Origin(), name, "given %s: it %v", item.Describe(), err)
		} else if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts, len(r.faults) == before
}
