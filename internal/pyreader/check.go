package pyreader

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pyeval"
	"github.com/primus-fl/primus/internal/pyreader/pysource"
	"github.com/primus-fl/primus/internal/suggest"
)

// Status is the state of a target of a patch in the source tree of a framework.
type Status string

// The statuses. Those from Missing on are problems.
const (
	There      Status = "there"
	External   Status = "external"   // of a package that the source tree does not have
	Undeclared Status = "undeclared" // an attribute that its class does not declare: the patch adds it, or it is set at run time
	Dynamic    Status = "dynamic"    // its name is only known at run time
	Missing    Status = "missing"
	Parameters Status = "parameters" // the replacement cannot take its parameters
	Anchor     Status = "anchor"     // its source does not have the text that the patch replaces exactly once
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{There, Undeclared, Dynamic, External, Missing, Parameters, Anchor}
}

// Problem reports whether the patch might not work.
func (s Status) Problem() bool { return s == Missing || s == Parameters || s == Anchor }

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
// occurs exactly once.
func (c *Checkout) Check(trees ...string) ([]Finding, error) {
	index := &index{files: map[string]*pysource.File{}}
	for _, dir := range trees {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("source tree of a framework: %q is not a folder", dir)
		}
		index.roots = append(index.roots, os.DirFS(dir))
		if src := filepath.Join(dir, "src"); isFolder(src) {
			index.roots = append(index.roots, os.DirFS(src))
		}
	}
	stashed := c.stashed()
	var findings []Finding
	for i := range c.Records {
		r := &c.Records[i]
		if !r.Effective {
			continue
		}
		for _, symbol := range r.Symbols {
			findings = append(findings, index.check(r, symbol, stashed))
		}
	}
	return findings, nil
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// stashed returns the names under which patches keep what they replace.
func (c *Checkout) stashed() map[string]string {
	kept := map[string]string{}
	for _, r := range c.Records {
		for _, e := range r.Effects {
			if e.Kind == "stash" {
				kept[e.Target] = e.By
			}
		}
	}
	return kept
}

// index finds names in source trees.
type index struct {
	roots []fs.FS
	files map[string]*pysource.File // nil for files that cannot be read
	names map[string][]string       // where names are defined at the top level of modules
}

// check returns the state of a symbol of a record.
func (x *index) check(r *Record, symbol string, stashed map[string]string) Finding {
	f := Finding{Patch: r.ID, Target: symbol}
	if strings.HasPrefix(symbol, "<") {
		f.Status = Dynamic
		return f
	}
	source, ok := stashed[symbol]
	if !ok {
		source = symbol
	}
	source, _, _ = strings.Cut(source, "[") // an item of a registry: the registry is looked for
	d := x.find(source, 0)
	f.Status, f.Kind, f.Where, f.Detail = d.status, d.kind, d.where(), d.detail
	if f.Status != There {
		return f
	}
	if def, ok := d.node.(*pysource.FunctionDef); ok {
		for _, e := range r.Effects {
			if e.Target == symbol && !e.Alternative {
				x.compare(&f, &e, d.file, def)
			}
		}
	}
	return f
}

// compare checks what an effect assumes about a function.
func (x *index) compare(f *Finding, e *Effect, file *pysource.File, def *pysource.FunctionDef) {
	for _, anchor := range e.Anchors {
		if n := strings.Count(file.Source(def), anchor[0]); n != 1 {
			line, _, _ := strings.Cut(strings.TrimSpace(anchor[0]), "\n")
			f.Status, f.Detail = Anchor, fmt.Sprintf("its source has the text to be replaced %d times, expected once: %s", n, line)
			return
		}
	}
	if e.function == nil || e.Style == Rewrite {
		return
	}
	problem, note := accepts(e.function.Args, def.Args)
	f.Detail = note
	if problem != "" {
		f.Status, f.Detail = Parameters, problem
	}
}

// accepts says why a function cannot replace another one. note is a difference that matters to some
// callers only. Both are empty if there is none.
func accepts(replacement, original *pysource.Arguments) (problem, note string) {
	have := slices.Concat(replacement.Posonlyargs, replacement.Args)
	want := slices.Concat(original.Posonlyargs, original.Args)
	needed := len(want) - len(original.Defaults)
	for i, p := range want {
		switch {
		case i < len(have) && have[i].Name == p.Name, named(replacement, p.Name) && replacement.Kwarg != nil:
		case i < len(have):
			note = fmt.Sprintf("its parameter %d is %s, that of the replacement is %s", i+1, p.Name, have[i].Name)
		case replacement.Vararg != nil && replacement.Kwarg != nil:
		case i < needed && replacement.Vararg == nil && !named(replacement, p.Name):
			return fmt.Sprintf("it needs %s, which the replacement does not take", p.Name), ""
		case !named(replacement, p.Name) && replacement.Kwarg == nil:
			note = fmt.Sprintf("it takes %s, which the replacement does not take", p.Name)
		}
	}
	for i, p := range original.Kwonlyargs {
		if replacement.Kwarg != nil || named(replacement, p.Name) {
			continue
		}
		note = fmt.Sprintf("it takes %s, which the replacement does not take", p.Name)
		if original.KwDefaults[i] == nil {
			return note, ""
		}
	}
	if required := len(have) - len(replacement.Defaults); required > len(want) && original.Vararg == nil {
		return fmt.Sprintf("the replacement needs %s, which it does not have", have[len(want)].Name), ""
	}
	return "", note
}

func named(args *pysource.Arguments, name string) bool {
	is := func(a *pysource.Arg) bool { return a.Name == name }
	return slices.ContainsFunc(args.Args, is) || slices.ContainsFunc(args.Kwonlyargs, is)
}

// definition is what was found for a name.
type definition struct {
	status Status
	kind   string
	detail string
	path   string
	file   *pysource.File
	node   pysource.Node // nil for modules
}

func (d definition) where() string {
	if d.file == nil {
		return ""
	}
	if d.node == nil {
		return d.path
	}
	return fmt.Sprintf("%s:%d", d.path, d.file.Line(d.node.Range().Start))
}

// find looks for a dotted name.
func (x *index) find(name string, depth int) definition {
	parts := strings.Split(name, ".")
	for n := len(parts); n > 0; n-- {
		module := strings.Join(parts[:n], ".")
		path, ok := x.module(module)
		if !ok {
			continue
		}
		file := x.parse(path)
		if file == nil { // a folder without __init__.py
			if n == len(parts) {
				return definition{status: There, kind: "module", path: path}
			}
			return definition{status: External, detail: "the source tree has no " + strings.Join(parts[:n+1], ".")}
		}
		if n == len(parts) {
			return definition{status: There, kind: "module", path: path, file: file}
		}
		return x.member(module, path, file, parts[n:], depth)
	}
	return definition{status: External, detail: "the source tree has no package " + parts[0]}
}

// module returns the file of a module, or its folder where it has no __init__.py.
func (x *index) module(name string) (string, bool) {
	base := strings.ReplaceAll(name, ".", "/")
	for _, candidate := range []string{base + "/__init__.py", base + ".py", base} {
		for _, root := range x.roots {
			if info, err := fs.Stat(root, candidate); err == nil && info.IsDir() == (candidate == base) {
				return candidate, true
			}
		}
	}
	return "", false
}

func (x *index) parse(path string) *pysource.File {
	if f, ok := x.files[path]; ok {
		return f
	}
	x.files[path] = nil
	for _, root := range x.roots {
		if !strings.HasSuffix(path, ".py") {
			break
		}
		if f, err := pyeval.New(root).Parse(path); err == nil {
			x.files[path] = f
			break
		}
	}
	return x.files[path]
}

// maxImports bounds how many imports are followed for one name.
const maxImports = 12

// member looks for a name in a module, and for attributes of it.
func (x *index) member(module, path string, file *pysource.File, names []string, depth int) definition {
	var found definition
	top(file.Body, func(n pysource.Node, name, kind string) {
		if name == names[0] {
			found = definition{status: There, kind: kind, path: path, file: file, node: n}
		}
	})
	if found.node == nil {
		if d, ok := x.star(module, path, file, names, depth); ok {
			return d
		}
		return x.missing(module, path, file, names)
	}
	if from, ok := found.node.(*pysource.ImportFrom); ok && depth < maxImports {
		return x.imported(found, from, path, module, names, depth)
	}
	if len(names) == 1 {
		return found
	}
	if class, ok := found.node.(*pysource.ClassDef); ok {
		return x.classMember(found, class, module, names, depth)
	}
	return definition{status: Undeclared, kind: found.kind, path: path, file: file, node: found.node, detail: names[0] + " is a " + found.kind}
}

// imported follows the import of a name to its definition, or to that of one of its attributes.
func (x *index) imported(found definition, from *pysource.ImportFrom, path, module string, names []string, depth int) definition {
	original := names[0]
	for _, a := range from.Names {
		if a.AsName == names[0] {
			original = a.Name
		}
	}
	target := strings.Join(append([]string{absolute(from, module, path), original}, names[1:]...), ".")
	d := x.find(target, depth+1)
	if len(names) > 1 || d.status == Missing {
		if d.status == Missing && len(names) == 1 {
			return found
		}
		return d
	}
	found.kind = "import"
	if def, ok := d.node.(*pysource.FunctionDef); ok {
		found.node, found.file, found.path = def, d.file, d.path
	}
	return found
}

// absolute returns the module that an import in a module is from.
func absolute(from *pysource.ImportFrom, module, path string) string {
	if from.Level == 0 {
		return from.Module
	}
	parts := strings.Split(module, ".")
	up := from.Level
	if strings.HasSuffix(path, "/__init__.py") {
		up--
	}
	parts = parts[:max(len(parts)-up, 0)]
	return strings.Trim(strings.Join(parts, ".")+"."+from.Module, ".")
}

// star looks for a name in the modules of star imports.
func (x *index) star(module, path string, file *pysource.File, names []string, depth int) (definition, bool) {
	for _, s := range file.Body {
		from, ok := s.(*pysource.ImportFrom)
		if !ok || from.Names[0].Name != "*" || depth >= maxImports {
			continue
		}
		d := x.find(strings.Join(append([]string{absolute(from, module, path)}, names...), "."), depth+1)
		if d.status == There || d.status == Undeclared {
			return d, true
		}
	}
	return definition{}, false
}

// classMember looks for an attribute in a class and its bases.
func (x *index) classMember(found definition, class *pysource.ClassDef, module string, names []string, depth int) definition {
	member := definition{}
	top(class.Body, func(n pysource.Node, name, kind string) {
		if name == names[1] {
			member = definition{status: There, kind: "member", path: found.path, file: found.file, node: n}
		}
	})
	if member.node != nil {
		return member
	}
	for _, base := range class.Bases {
		if depth >= maxImports {
			break
		}
		name := found.file.Source(base)
		d := x.find(module+"."+name+"."+names[1], depth+1)
		if d.status == There {
			return d
		}
	}
	return definition{status: Undeclared, kind: "member", path: found.path, file: found.file, node: class,
		detail: fmt.Sprintf("class %s declares no %s", class.Name, names[1])}
}

// missing says what may have become of a name that does not exist.
func (x *index) missing(module, path string, file *pysource.File, names []string) definition {
	d := definition{status: Missing, path: path, file: file, detail: fmt.Sprintf("no %s in %s", names[0], path)}
	if elsewhere := x.elsewhere(names[0]); len(elsewhere) > 0 {
		d.detail += "; moved to " + strings.Join(elsewhere[:min(len(elsewhere), 3)], " or ") + "?"
		return d
	}
	var known []string
	top(file.Body, func(_ pysource.Node, name, _ string) { known = append(known, name) })
	if near, ok := suggest.Nearest(names[0], known); ok {
		d.detail += fmt.Sprintf("; renamed to %s.%s?", module, near)
	}
	return d
}

// elsewhere returns the modules that define a function or a class.
func (x *index) elsewhere(name string) []string {
	if x.names == nil {
		x.names = map[string][]string{}
		for _, root := range x.roots {
			x.collect(root)
		}
	}
	return x.names[name]
}

// collect records the functions and classes of all modules of a tree.
func (x *index) collect(root fs.FS) {
	_ = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".py") || strings.HasPrefix(path, "tests/") || strings.HasPrefix(path, "src/") {
			return nil
		}
		if file := x.parse(path); file != nil {
			module := strings.TrimSuffix(strings.ReplaceAll(strings.TrimSuffix(path, ".py"), "/", "."), ".__init__")
			top(file.Body, func(_ pysource.Node, name, kind string) {
				if kind == "function" || kind == "class" {
					x.names[name] = addTo(x.names[name], module)
				}
			})
		}
		return nil
	})
}

// top calls note for every name that statements bind, in branches as well.
func top(body []pysource.Stmt, note func(n pysource.Node, name, kind string)) {
	for _, s := range body {
		switch s := s.(type) {
		case *pysource.FunctionDef:
			note(s, s.Name, "function")
		case *pysource.ClassDef:
			note(s, s.Name, "class")
		case *pysource.Assign:
			for _, t := range s.Targets {
				pysource.Walk(t, func(n pysource.Node) bool {
					if name, ok := n.(*pysource.Name); ok {
						note(s, name.ID, "variable")
					}
					_, attribute := n.(*pysource.Attribute)
					return !attribute
				})
			}
		case *pysource.AnnAssign:
			if name, ok := s.Target.(*pysource.Name); ok {
				note(s, name.ID, "variable")
			}
		case *pysource.Import:
			for _, a := range s.Names {
				name := a.AsName
				if name == "" {
					name, _, _ = strings.Cut(a.Name, ".")
				}
				note(s, name, "import")
			}
		case *pysource.ImportFrom:
			for _, a := range s.Names {
				name := a.AsName
				if name == "" {
					name = a.Name
				}
				note(s, name, "import")
			}
		case *pysource.If:
			top(s.Body, note)
			top(s.Orelse, note)
		case *pysource.With:
			top(s.Body, note)
		case *pysource.For:
			top(s.Body, note)
		case *pysource.Try:
			top(s.Body, note)
			for _, h := range s.Handlers {
				top(h.Body, note)
			}
			top(s.Orelse, note)
			top(s.Finalbody, note)
		}
	}
}
