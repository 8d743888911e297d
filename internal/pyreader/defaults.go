package pyreader

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// argumentsModule is where Megatron-LM makes its parser of arguments.
const argumentsModule = "megatron.training.arguments"

// Defaults are the defaults of a framework's parameters, as its source tree states them.
type Defaults struct {
	Version string // of the framework
	Values  map[string]any
	Unknown []string // parameters whose defaults are computed
}

// MegatronDefaults reads the defaults of the parser of a source tree of Megatron-LM: those of
// add_argument, and of the dataclasses from which groups of arguments are made. It ends with ctx,
// and with a *meter.Error when it takes too long.
func MegatronDefaults(ctx context.Context, tree string) (*Defaults, error) {
	if !isFolder(tree) {
		return nil, fmt.Errorf("source tree of a framework: given %q, want a folder", tree)
	}
	r := &defaultsReader{
		index: newIndex(ctx, tree),
		found: &Defaults{Values: map[string]any{}}, seen: map[string]bool{},
	}
	files, err := source(tree)
	if err != nil {
		return nil, fmt.Errorf("source tree of a framework: %w", err)
	}
	r.index.roots = []fs.FS{files}
	mod, _ := r.index.module(argumentsModule)
	if err := r.index.meter.Check(); err != nil {
		return nil, err
	}
	if mod.file == nil {
		return nil, fmt.Errorf("%s: no module %s that can be read, want the root of a checkout of Megatron-LM", tree, argumentsModule)
	}
	for _, s := range mod.file.Body {
		if s.Kind == syntax.FunctionDef {
			r.function(s)
		}
	}
	if err := r.index.meter.Check(); err != nil {
		return nil, err
	}
	if len(r.found.Values) == 0 {
		return nil, fmt.Errorf("%s: it adds no arguments in a way that can be read", filepath.Join(tree, mod.path))
	}
	slices.Sort(r.found.Unknown)
	r.found.Version, err = FrameworkVersion(tree, "megatron")
	return r.found, err
}

// defaultsReader collects defaults.
type defaultsReader struct {
	index *index
	found *Defaults
	seen  map[string]bool
}

// add records a default. The first one of a parameter counts, as for argparse.
func (r *defaultsReader) add(name string, value any, known bool) {
	switch {
	case name == "" || r.seen[name]:
		return
	case known:
		r.found.Values[name] = value
	default:
		r.found.Unknown = append(r.found.Unknown, name)
	}
	r.seen[name] = true
}

// function reads the arguments that a function adds.
func (r *defaultsReader) function(def *syntax.Node) {
	lists := map[string]*syntax.Node{} // that the function assigns
	classes := map[string][2]string{}  // that it imports, by module and name
	syntax.Walk(def, func(n *syntax.Node) bool {
		switch n.Kind {
		case syntax.ImportFrom:
			for _, a := range n.List {
				classes[a.Bound()] = [2]string{moduleAt{name: argumentsModule}.absolute(n), a.Name}
			}
		case syntax.Assign:
			if name := n.Targets[0].Ident(); name != "" {
				lists[name] = n.Value
			}
		case syntax.Call:
			if n.Value.Kind == syntax.Attribute && n.Value.Name == "add_argument" {
				r.argument(n)
			}
			if n.Value.Ident() == "ArgumentGroupFactory" && len(n.List) > 0 && n.List[0].Kind == syntax.Name {
				r.group(n, lists, classes)
			}
		}
		return true
	})
}

// argument reads a call of add_argument.
func (r *defaultsReader) argument(call *syntax.Node) {
	dest, _ := call.Argument("dest").Str()
	for _, a := range call.List {
		if flag, ok := a.Str(); ok && dest == "" && strings.HasPrefix(flag, "--") {
			dest = strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "-", "_")
		}
	}
	if given := call.Argument("default"); given != nil {
		value, known := evaluate(given)
		r.add(dest, value, known)
		return
	}
	switch action, _ := call.Argument("action").Str(); action {
	case "store_true":
		r.add(dest, false, true)
	case "store_false":
		r.add(dest, true, true)
	default:
		r.add(dest, nil, true)
	}
}

// group reads a group that is made from a dataclass.
func (r *defaultsReader) group(call *syntax.Node, lists map[string]*syntax.Node, classes map[string][2]string) {
	excluded := call.Argument("exclude")
	if excluded.Is(syntax.Name) {
		excluded = lists[excluded.Name]
	}
	var left []string
	if excluded.Is(syntax.List) {
		for _, e := range excluded.List {
			word, _ := e.Str()
			left = append(left, word)
		}
	}
	module, name := argumentsModule, call.List[0].Name
	if from, ok := classes[name]; ok {
		module, name = from[0], from[1]
	}
	def, module := r.class(module, name, 0)
	for _, f := range r.fields(def, module, 0) {
		if !slices.Contains(left, f.name) {
			r.add(f.dest, f.value, f.known)
		}
	}
}

// class finds a class by the name that it has in a module, and returns the module that defines it.
func (r *defaultsReader) class(module, name string, depth int) (def *syntax.Node, in string) {
	mod, _ := r.index.module(module)
	if mod.file == nil || depth > maxImports {
		return nil, ""
	}
	top(mod.file.Body, func(n *syntax.Node, bound, _ string) {
		switch {
		case bound != name || def != nil:
		case n.Kind == syntax.ClassDef:
			def, in = n, module
		case n.Kind == syntax.ImportFrom:
			for _, a := range n.List {
				if a.Bound() == name {
					def, in = r.class(mod.absolute(n), a.Name, depth+1)
				}
			}
		}
	})
	return def, in
}

// field is a field of a dataclass with its default.
type field struct {
	name  string
	dest  string // of its argument
	value any
	known bool
}

// fields returns the fields of a dataclass, those of its bases first.
func (r *defaultsReader) fields(class *syntax.Node, module string, depth int) []field {
	if class == nil || depth > maxImports {
		return nil
	}
	var all []field
	for _, base := range class.List {
		if base.Kind == syntax.Name {
			def, in := r.class(module, base.Name, 0)
			all = append(all, r.fields(def, in, depth+1)...)
		}
	}
	for _, s := range class.Body {
		if s.Kind != syntax.AnnAssign || s.Value == nil || s.Target.Kind != syntax.Name || annotated(s.Annotation, "ClassVar", "InitVar") {
			continue
		}
		f := field{name: s.Target.Name, dest: s.Target.Name}
		value := s.Value
		if calls(value, "field") {
			if initialised, _ := evaluate(value.Argument("init")); initialised == false {
				continue
			}
			meta := entry(value.Argument("metadata"), "argparse_meta")
			if dest, ok := entry(meta, "dest").Str(); ok {
				f.dest = dest
			}
			if value = entry(meta, "default"); value == nil {
				value = fieldDefault(s.Value)
			}
		}
		f.value, f.known = evaluate(value)
		if i := slices.IndexFunc(all, func(other field) bool { return other.name == f.name }); i >= 0 {
			all[i] = f
		} else {
			all = append(all, f)
		}
	}
	return all
}

// entry returns the value of a key of a dict, nil if there is no such dict or key.
func entry(dict *syntax.Node, key string) (value *syntax.Node) {
	if dict.Is(syntax.Dict) {
		for i, k := range dict.Keys {
			if word, ok := k.Str(); ok && word == key {
				value = dict.List[i]
			}
		}
	}
	return value
}

// fieldDefault returns the expression of the default that a call of field states.
func fieldDefault(call *syntax.Node) *syntax.Node {
	factory := call.Argument("default_factory")
	switch value := call.Argument("default"); {
	case value != nil:
		return value
	case factory.Is(syntax.Lambda):
		return factory.Returns
	case factory.Ident() == "list":
		return &syntax.Node{Kind: syntax.List}
	}
	return nil
}

// annotated reports whether an annotation begins with one of some names.
func annotated(annotation *syntax.Node, names ...string) bool {
	if annotation.Kind == syntax.Subscript {
		annotation = annotation.Value
	}
	return (annotation.Kind == syntax.Name || annotation.Kind == syntax.Attribute) && slices.Contains(names, annotation.Name)
}
