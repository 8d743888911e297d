package pyreader

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/internal/pyreader/internal/eval"
	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
	"github.com/primus-fl/primus/internal/suggest"
)

// Status is the state of a target of a patch in the source tree of a framework.
type Status string

// The statuses. Those from missing on are problems.
const (
	There      Status = "there"
	External   Status = "external"   // of a package that the source tree does not have
	undeclared Status = "undeclared" // an attribute that its class does not declare: the patch adds it, or it is set at run time
	dynamic    Status = "dynamic"    // its name is only known at run time
	missing    Status = "missing"
	parameters Status = "parameters" // the replacement cannot take its parameters
	anchor     Status = "anchor"     // its source does not have the text that the patch replaces exactly once
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{There, undeclared, dynamic, External, missing, parameters, anchor}
}

// Problem reports whether the patch might not work.
func (s Status) Problem() bool { return s == missing || s == parameters || s == anchor }

// Finding is the state of a target of a patch.
type Finding struct {
	Patch  string `json:"patch"`
	Target string `json:"target"`
	Status Status `json:"status"`
	Kind   string `json:"kind,omitempty"` // function, class, variable, import, member or module
	Where  string `json:"where,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Check looks up what patches change in the source trees of the frameworks: whether it still
// exists, whether the patches take its parameters, and whether each text that a patch replaces
// occurs exactly once. It ends with ctx, and with a *meter.Error when it takes too long.
func (c *Checkout) Check(ctx context.Context, trees ...string) ([]Finding, error) {
	index := newIndex(ctx, trees...)
	for _, dir := range trees {
		if !isFolder(dir) {
			return nil, fmt.Errorf("source tree of a framework: given %q, want a folder", dir)
		}
		for _, dir := range []string{dir, filepath.Join(dir, "src")} {
			if !isFolder(dir) {
				continue
			}
			files, err := source(dir)
			if err != nil {
				return nil, fmt.Errorf("source tree of a framework: %w", err)
			}
			index.roots = append(index.roots, files)
		}
	}
	kept := map[string]string{} // the names under which patches keep what they replace
	for _, r := range c.Records {
		for _, e := range r.Effects {
			if e.Kind == "stash" {
				kept[e.Target] = e.By
			}
		}
	}
	var findings []Finding
	for i := range c.Records {
		if r := &c.Records[i]; r.Effective {
			for _, symbol := range r.Symbols {
				findings = append(findings, index.check(r, symbol, kept))
			}
		}
	}
	if err := index.meter.Check(); err != nil {
		return nil, err
	}
	return findings, nil
}

// source returns the files of a folder. Links that lead out of it are not followed, and neither
// pipes nor devices are opened. The garbage collector closes it.
func source(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return durable.RootFS(root), nil
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// index finds names in source trees.
type index struct {
	roots []fs.FS
	files map[string]*syntax.File // nil for files that cannot be read
	names map[string][]string     // where names are defined at the top level of modules
	meter *meter.Meter
}

func newIndex(ctx context.Context, trees ...string) *index {
	budget := meter.New(ctx, "reading "+strings.Join(trees, ", "), "give the folder with the source of a framework", meter.Budget{Time: maxTime})
	return &index{files: map[string]*syntax.File{}, meter: budget}
}

// check returns the state of a symbol of a record.
func (x *index) check(r *Record, symbol string, kept map[string]string) Finding {
	f := Finding{Patch: r.ID, Target: symbol}
	if strings.HasPrefix(symbol, "<") {
		f.Status = dynamic
		return f
	}
	source, ok := kept[symbol]
	if !ok {
		source = symbol
	}
	source, _, _ = strings.Cut(source, "[") // an item of a registry: the registry is looked for
	d := x.find(source, 0)
	f.Status, f.Kind, f.Where, f.Detail = d.status, d.kind, d.where(), d.detail
	if f.Status != There || !d.node.Is(syntax.FunctionDef) {
		return f
	}
	for _, e := range r.Effects {
		if e.Target == symbol && !e.Alternative {
			compare(&f, &e, d.file, d.node)
		}
	}
	return f
}

// compare checks what an effect assumes about a function.
func compare(f *Finding, e *Effect, file *syntax.File, def *syntax.Node) {
	for _, text := range e.Anchors {
		if n := strings.Count(file.Source(def), text[0]); n != 1 {
			line, _, _ := strings.Cut(strings.TrimSpace(text[0]), "\n")
			f.Status, f.Detail = anchor, fmt.Sprintf("its source has the text to be replaced %d times, want once: %s", n, line)
			return
		}
	}
	if e.function == nil || e.Style == Rewrite {
		return
	}
	problem, note := accepts(e.function.Def.Params, def.Params)
	f.Detail = note
	if problem != "" {
		f.Status, f.Detail = parameters, problem
	}
}

// signature is the parameters of a function by their roles.
type signature struct {
	positional, keywords []*syntax.Node
	named                map[string]bool // those that a caller may name
	rest, others         bool            // it has *args, **kwargs
	required             int             // positional parameters without a default
}

func signatureOf(params []*syntax.Node) signature {
	s := signature{named: map[string]bool{}}
	for _, p := range params {
		switch p.Level {
		case syntax.VarArgs:
			s.rest = true
		case syntax.VarKeywords:
			s.others = true
		case syntax.KeywordOnly:
			s.keywords = append(s.keywords, p)
			s.named[p.Name] = true
		default:
			s.positional = append(s.positional, p)
			s.named[p.Name] = s.named[p.Name] || p.Level == syntax.Positional
			if p.Value == nil {
				s.required++
			}
		}
	}
	return s
}

// accepts says why a function cannot replace another one. note is a difference that matters to some
// callers only. Both are empty if there is none.
func accepts(replacement, original []*syntax.Node) (problem, note string) {
	r, o := signatureOf(replacement), signatureOf(original)
	for i, p := range o.positional {
		switch {
		case i < len(r.positional) && r.positional[i].Name == p.Name, r.named[p.Name] && r.others:
		case i < len(r.positional):
			note = fmt.Sprintf("its parameter %d is %s, that of the replacement is %s", i+1, p.Name, r.positional[i].Name)
		case r.rest && r.others:
		case i < o.required && !r.rest && !r.named[p.Name]:
			return fmt.Sprintf("it needs %s, which the replacement does not take", p.Name), ""
		case !r.named[p.Name] && !r.others:
			note = fmt.Sprintf("it takes %s, which the replacement does not take", p.Name)
		}
	}
	for _, p := range o.keywords {
		if !r.others && !r.named[p.Name] {
			note = fmt.Sprintf("it takes %s, which the replacement does not take", p.Name)
			if p.Value == nil {
				return note, ""
			}
		}
	}
	if r.required > len(o.positional) && !o.rest {
		return fmt.Sprintf("the replacement needs %s, which it does not have", r.positional[len(o.positional)].Name), ""
	}
	return "", note
}

// definition is what was found for a name.
type definition struct {
	status Status
	kind   string
	detail string
	path   string
	file   *syntax.File
	node   *syntax.Node // nil for modules
}

func (d definition) where() string {
	switch {
	case d.file == nil:
		return ""
	case d.node == nil:
		return d.path
	}
	return fmt.Sprintf("%s:%d", d.path, d.file.Line(d.node.Start))
}

// moduleAt is a module of the source trees.
type moduleAt struct {
	name, path string
	file       *syntax.File
}

// find looks for a dotted name.
func (x *index) find(name string, depth int) definition {
	parts := strings.Split(name, ".")
	for n := len(parts); n > 0; n-- {
		mod, ok := x.module(strings.Join(parts[:n], "."))
		switch {
		case !ok:
			continue
		case n == len(parts):
			return definition{status: There, kind: "module", path: mod.path, file: mod.file}
		case mod.file == nil: // a folder without __init__.py
			return definition{status: External, detail: "the source tree has no " + strings.Join(parts[:n+1], ".")}
		}
		return x.member(mod, parts[n:], depth)
	}
	return definition{status: External, detail: "the source tree has no package " + parts[0]}
}

// module returns a module, or its folder where it has no __init__.py.
func (x *index) module(name string) (moduleAt, bool) {
	base := strings.ReplaceAll(name, ".", "/")
	for _, candidate := range []string{base + "/__init__.py", base + ".py", base} {
		for _, root := range x.roots {
			if info, err := fs.Stat(root, candidate); err == nil && info.IsDir() == (candidate == base) {
				return moduleAt{name, candidate, x.parse(candidate)}, true
			}
		}
	}
	return moduleAt{}, false
}

func (x *index) parse(path string) *syntax.File {
	f, ok := x.files[path]
	if !ok {
		f = x.read(path)
		x.files[path] = f
	}
	return f
}

// read reads a file that is not kept; it is nil if it cannot be read.
func (x *index) read(path string) *syntax.File {
	for _, root := range x.roots {
		machine := eval.New(root)
		machine.Meter = x.meter
		if f, err := machine.Parse(path); err == nil && strings.HasSuffix(path, ".py") {
			return f
		}
	}
	return nil
}

// maxImports bounds how many imports are followed for one name.
const maxImports = 12

// member looks for a name in a module, and for attributes of it.
func (x *index) member(mod moduleAt, names []string, depth int) definition {
	found := definition{status: There, path: mod.path, file: mod.file}
	top(mod.file.Body, func(n *syntax.Node, name, kind string) {
		if name == names[0] {
			found.node, found.kind = n, kind
		}
	})
	switch {
	case found.node == nil:
		if d, ok := x.star(mod, names, depth); ok {
			return d
		}
		return x.missing(mod, names[0])
	case found.node.Kind == syntax.ImportFrom && depth < maxImports:
		return x.imported(found, mod, names, depth)
	case len(names) == 1:
		return found
	case found.node.Kind == syntax.ClassDef:
		return x.classMember(found, mod.name, names[1], depth)
	}
	found.status, found.detail = undeclared, names[0]+" is a "+found.kind
	return found
}

// imported follows the import of a name to its definition, or to that of one of its attributes.
func (x *index) imported(found definition, mod moduleAt, names []string, depth int) definition {
	original := names[0]
	for _, a := range found.node.List {
		if a.As == names[0] {
			original = a.Name
		}
	}
	d := x.find(strings.Join(append([]string{mod.absolute(found.node), original}, names[1:]...), "."), depth+1)
	switch {
	case len(names) > 1:
		return d
	case d.status == missing:
		return found
	}
	found.kind = "import"
	if d.node.Is(syntax.FunctionDef) {
		found.node, found.file, found.path = d.node, d.file, d.path
	}
	return found
}

// absolute returns the module that an import in a module is from.
func (mod moduleAt) absolute(from *syntax.Node) string {
	if from.Level == 0 {
		return from.Name
	}
	parts := strings.Split(mod.name, ".")
	up := from.Level
	if strings.HasSuffix(mod.path, "/__init__.py") {
		up--
	}
	return strings.Trim(strings.Join(parts[:max(len(parts)-up, 0)], ".")+"."+from.Name, ".")
}

// star looks for a name in the modules of star imports.
func (x *index) star(mod moduleAt, names []string, depth int) (definition, bool) {
	for _, s := range mod.file.Body {
		if s.Kind == syntax.ImportFrom && s.List[0].Name == "*" && depth < maxImports {
			d := x.find(mod.absolute(s)+"."+strings.Join(names, "."), depth+1)
			if d.status == There || d.status == undeclared {
				return d, true
			}
		}
	}
	return definition{}, false
}

// classMember looks for an attribute in a class and its bases.
func (x *index) classMember(class definition, module, name string, depth int) definition {
	found := class
	found.kind, found.node = "member", nil
	top(class.node.Body, func(n *syntax.Node, bound, _ string) {
		if bound == name {
			found.node = n
		}
	})
	if found.node != nil {
		return found
	}
	for _, base := range class.node.List {
		if depth >= maxImports {
			break
		}
		if d := x.find(module+"."+class.file.Source(base)+"."+name, depth+1); d.status == There {
			return d
		}
	}
	found.status, found.node, found.detail = undeclared, class.node, fmt.Sprintf("class %s declares no %s", class.node.Name, name)
	return found
}

// missing says what may have become of a name that does not exist.
func (x *index) missing(mod moduleAt, name string) definition {
	d := definition{status: missing, path: mod.path, file: mod.file, detail: fmt.Sprintf("no %s in %s", name, mod.path)}
	if x.names == nil {
		x.names = map[string][]string{}
		for _, root := range x.roots {
			x.collect(root)
		}
	}
	if elsewhere := x.names[name]; len(elsewhere) > 0 {
		d.detail += "; moved to " + strings.Join(elsewhere[:min(len(elsewhere), 3)], " or ") + "?"
		return d
	}
	var known []string
	top(mod.file.Body, func(_ *syntax.Node, name, _ string) { known = append(known, name) })
	if nearest, ok := suggest.Nearest(name, known); ok {
		d.detail += fmt.Sprintf("; renamed to %s.%s?", mod.name, nearest)
	}
	return d
}

// collect records the functions and classes of all modules of a tree.
func (x *index) collect(root fs.FS) {
	_ = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if x.meter.Check() != nil {
			return fs.SkipAll
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".py") || strings.HasPrefix(path, "tests/") || strings.HasPrefix(path, "src/") {
			return nil
		}
		file, kept := x.files[path]
		if !kept { // most are not needed again
			file = x.read(path)
		}
		if file != nil {
			module := strings.TrimSuffix(strings.ReplaceAll(strings.TrimSuffix(path, ".py"), "/", "."), ".__init__")
			top(file.Body, func(_ *syntax.Node, name, kind string) {
				if kind == "function" || kind == "class" {
					x.names[name] = addTo(x.names[name], module)
				}
			})
		}
		return nil
	})
}

// top calls note for every name that statements bind, in branches as well.
func top(body []*syntax.Node, note func(n *syntax.Node, name, kind string)) {
	for _, s := range body {
		switch s.Kind {
		case syntax.FunctionDef:
			note(s, s.Name, "function")
		case syntax.ClassDef:
			note(s, s.Name, "class")
		case syntax.Assign, syntax.AnnAssign:
			targets := s.Targets
			if s.Target.Is(syntax.Name) {
				targets = []*syntax.Node{s.Target}
			}
			for _, t := range targets {
				syntax.Walk(t, func(n *syntax.Node) bool {
					if n.Kind == syntax.Name {
						note(s, n.Name, "variable")
					}
					return n.Kind != syntax.Attribute
				})
			}
		case syntax.Import, syntax.ImportFrom:
			for _, a := range s.List {
				name := a.Bound()
				if s.Kind == syntax.Import && a.As == "" {
					name, _, _ = strings.Cut(name, ".")
				}
				note(s, name, "import")
			}
		case syntax.If, syntax.With, syntax.For, syntax.Try:
			top(s.Body, note)
			for _, h := range s.Handlers {
				top(h.Body, note)
			}
			if s.Kind == syntax.If || s.Kind == syntax.Try {
				top(slices.Concat(s.Else, s.Finally), note)
			}
		}
	}
}
