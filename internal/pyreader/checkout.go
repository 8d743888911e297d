package pyreader

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pyeval"
	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// Checkout is a checkout of Primus with its patches.
type Checkout struct {
	Root     string
	Records  []Record   // in the order of their registration
	Disabled []Disabled // registrations that are commented out
	Inactive []Disabled // registrations in files that no backend imports
	Faults   []error    // files that cannot be read

	machine  *pyeval.Machine
	handlers []registration
}

// registration is the result of evaluating a decorator.
type registration struct {
	handler   *pyeval.Function
	condition pyeval.Value // nil for none
}

// Open reads the patches of all backends of a checkout; backends with more files come first.
func Open(root string) (*Checkout, error) {
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return nil, fmt.Errorf("checkout of Primus: %w; give the folder that git clone https://github.com/AMD-AGI/Primus makes", err)
	case !info.IsDir():
		return nil, fmt.Errorf("checkout of Primus: %s is a file, expected the folder of a checkout", root)
	}
	tree := os.DirFS(root)
	packages, err := patchPackages(tree)
	if err != nil {
		return nil, err
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("%s: no folder primus/backends/*/patches, expected the root of a checkout of Primus", root)
	}
	c := &Checkout{Root: root, machine: pyeval.New(tree)}
	c.machine.Hooks.Call = c.register
	for _, p := range packages {
		c.machine.Import(strings.ReplaceAll(p.dir, "/", "."))
	}
	c.machine.Hooks.Call = nil
	c.Faults = append(c.Faults, c.machine.Faults...)
	c.overrides()
	c.texts(tree, packages)
	for i := range c.Records {
		c.analyse(i)
	}
	return c, nil
}

type patchPackage struct {
	dir   string
	files []string
}

// patchPackages returns the packages of patches of all backends with their files.
func patchPackages(tree fs.FS) ([]patchPackage, error) {
	dirs, err := fs.Glob(tree, "primus/backends/*/patches")
	if err != nil {
		return nil, err
	}
	var packages []patchPackage
	for _, dir := range dirs {
		p := patchPackage{dir: dir}
		err := fs.WalkDir(tree, dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".py") {
				p.files = append(p.files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	slices.SortStableFunc(packages, func(a, b patchPackage) int { return len(b.files) - len(a.files) })
	return packages, nil
}

// defaultPriority is that of register_patch.
const defaultPriority = 50

const engine = "primus.core.patches"

// register handles the calls of register_patch.
func (c *Checkout) register(call *pyeval.Call) (pyeval.Value, bool) {
	fn, ok := call.Func.(*pyeval.Function)
	if !ok || fn.Name != "register_patch" || !strings.HasPrefix(fn.Module.Name, engine) {
		return nil, false
	}
	return &pyeval.Native{Name: "register_patch", Call: func(_ *pyeval.Machine, decorated *pyeval.Call) pyeval.Value {
		handler, ok := decorated.Arg(0, "").(*pyeval.Function)
		if !ok || handler.Def == nil {
			return nil
		}
		c.add(call, handler)
		return handler
	}}, true
}

func (c *Checkout) add(call *pyeval.Call, handler *pyeval.Function) {
	file := handler.Module.File
	r := Record{
		File: handler.Module.Path, Line: file.Line(defStart(file, handler.Def)), Handler: handler.Name,
		DecoratorLine: call.Module.File.Line(call.Node.Start), Effective: true, Index: len(c.Records), Priority: defaultPriority,
		BackendVersions: []string{}, PrimusVersions: []string{}, Tags: []string{}, Doc: docstring(handler.Def.Body),
	}
	r.BackendDir, r.Group = place(r.File)
	text := func(name string, v pyeval.Value) string {
		if v == nil {
			return ""
		}
		if s, ok := pyeval.Str(v); ok {
			return s
		}
		if known, ok := v.(pyeval.Const); !ok || known.V != nil {
			r.Unknown = append(r.Unknown, name+": "+pyeval.Repr(v))
		}
		return ""
	}
	list := func(name string, v pyeval.Value) []string {
		items := []string{}
		s, ok := v.(*pyeval.Sequence)
		if !ok || s.Open {
			text(name, v)
			return items
		}
		for _, item := range s.Items {
			items = append(items, text(name, item))
		}
		return items
	}
	r.ID = text("id", call.Arg(0, "patch_id"))
	if r.ID == "" {
		r.ID = "unknown"
	}
	r.Backend, r.Phase = text("backend", call.Arg(-1, "backend")), text("phase", call.Arg(-1, "phase"))
	if r.Description = text("description", call.Arg(-1, "description")); r.Description == "" {
		r.Description = r.Doc
	}
	r.BackendVersions, r.PrimusVersions = list("backend_versions", call.Arg(-1, "backend_versions")), list("primus_versions", call.Arg(-1, "primus_versions"))
	r.Tags = list("tags", call.Arg(-1, "tags"))
	slices.Sort(r.Tags)
	r.Tags = slices.Compact(r.Tags)
	if p := call.Arg(-1, "priority"); p != nil {
		if n, ok := integer(p); ok {
			r.Priority = n
		} else {
			r.Unknown = append(r.Unknown, "priority: "+pyeval.Repr(p))
		}
	}
	reg := registration{handler: handler, condition: call.Arg(-1, "condition")}
	if known, ok := reg.condition.(pyeval.Const); ok && known.V == nil {
		reg.condition = nil
	}
	c.Records = append(c.Records, r)
	c.handlers = append(c.handlers, reg)
}

// place returns the backend whose folder a file is in, and the folder below its patches.
func place(file string) (backend, group string) {
	parts := strings.Split(file, "/")
	group = "(top)"
	for i, part := range parts {
		if part == "backends" && i+1 < len(parts) {
			backend = parts[i+1]
		}
		if part == "patches" && i+2 < len(parts) {
			group = parts[i+1]
		}
	}
	return backend, group
}

// defStart returns where the line with def or async def begins, after the decorators.
func defStart(file *pysource.File, def *pysource.FunctionDef) int {
	from := def.Start
	for _, d := range def.Decorators {
		from = max(from, d.Range().End)
	}
	at := from
	for at < def.End && strings.IndexByte(" \t\n\r)", file.Text[at]) >= 0 || at < def.End && file.Text[at] == '#' {
		if file.Text[at] == '#' {
			for at < def.End && file.Text[at] != '\n' {
				at++
			}
			continue
		}
		at++
	}
	return at
}

func docstring(body []pysource.Stmt) string {
	if len(body) == 0 {
		return ""
	}
	if s, ok := body[0].(*pysource.ExprStmt); ok {
		if c, ok := s.Value.(*pysource.Constant); ok {
			text, _ := c.Value.(string)
			return text
		}
	}
	return ""
}

// overrides marks the registrations that a later one with the same id replaces.
func (c *Checkout) overrides() {
	last := map[string]int{}
	for i := range c.Records {
		if before, ok := last[c.Records[i].ID]; ok {
			c.Records[before].Effective = false
		}
		last[c.Records[i].ID] = i
	}
}

var commented = regexp.MustCompile(`^#\s*@register_patch\(`)

var quotedID = regexp.MustCompile(`^#?\s*(?:#\s*@register_patch\(\s*)?(?:patch_id\s*=\s*)?["']([^"']+)["']`)

// texts finds the registrations in comments and in files that no backend imports.
func (c *Checkout) texts(tree fs.FS, packages []patchPackage) {
	imported := map[string]*pysource.File{}
	for _, mod := range c.machine.Modules() {
		imported[mod.Path] = mod.File
	}
	for _, p := range packages {
		for _, path := range p.files {
			file, active := imported[path]
			if !active {
				parsed, err := c.machine.Parse(path)
				if err != nil {
					c.Faults = append(c.Faults, err)
					continue
				}
				file = parsed
				c.Inactive = append(c.Inactive, registrations(file, path)...)
			}
			c.Disabled = append(c.Disabled, inComments(file, path)...)
		}
	}
}

// inComments returns the registrations in comments; the id is on the line of the decorator or on
// the next one.
func inComments(file *pysource.File, path string) []Disabled {
	var found []Disabled
	for i, comment := range file.Comments {
		if !commented.MatchString(comment.Text) {
			continue
		}
		d := Disabled{ID: "unknown", File: path, Line: file.Line(comment.Start)}
		for _, next := range file.Comments[i:min(i+2, len(file.Comments))] {
			if m := quotedID.FindStringSubmatch(next.Text); m != nil {
				d.ID = m[1]
				break
			}
		}
		found = append(found, d)
	}
	return found
}

// registrations returns the decorators of a file that is not imported.
func registrations(file *pysource.File, path string) []Disabled {
	var found []Disabled
	for _, s := range file.Body {
		def, ok := s.(*pysource.FunctionDef)
		if !ok {
			continue
		}
		for _, d := range def.Decorators {
			call, ok := d.(*pysource.Call)
			if !ok || file.Source(call.Func) != "register_patch" {
				continue
			}
			r := Disabled{ID: "unknown", File: path, Line: file.Line(call.Start)}
			if len(call.Args) > 0 {
				if id, ok := call.Args[0].(*pysource.Constant); ok {
					r.ID, _ = id.Value.(string)
				}
			}
			found = append(found, r)
		}
	}
	return found
}

// Find returns the effective record with an id.
func (c *Checkout) Find(id string) (*Record, bool) {
	for i := range c.Records {
		if r := &c.Records[i]; r.ID == id && r.Effective {
			return r, true
		}
	}
	return nil, false
}

// IDs returns the ids of all patches, sorted.
func (c *Checkout) IDs() []string {
	set := map[string]bool{}
	for i := range c.Records {
		set[c.Records[i].ID] = true
	}
	return slices.Sorted(maps.Keys(set))
}
