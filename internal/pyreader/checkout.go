package pyreader

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/internal/pyreader/internal/eval"
	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// Checkout is a checkout of Primus with its patches.
type Checkout struct {
	Root     string
	Records  []Record   // in the order of their registration
	Disabled []Disabled // registrations that are commented out
	Inactive []Disabled // registrations in files that no backend imports
	Faults   []error    // files that cannot be read

	machine  *eval.Machine
	handlers []registration
}

// registration is the result of evaluating a decorator.
type registration struct {
	handler   *eval.Function
	condition eval.Value // nil for none
}

// maxTime is how long reading a checkout may take.
const maxTime = 30 * time.Second

// Open reads the patches of all backends of a checkout; backends with more files come first. It
// ends with ctx, and with a *meter.Error when it takes too long.
func Open(ctx context.Context, root string) (*Checkout, error) {
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return nil, fmt.Errorf("checkout of Primus: %w; give the folder that git clone https://github.com/AMD-AGI/Primus makes", err)
	case !info.IsDir():
		return nil, fmt.Errorf("checkout of Primus: given the file %s, want the folder of a checkout", root)
	}
	tree, err := source(root)
	if err != nil {
		return nil, fmt.Errorf("checkout of Primus: %w", err)
	}
	budget := meter.New(ctx, "reading "+root, "give the folder of a checkout of Primus", meter.Budget{Time: maxTime})
	packages, err := patchPackages(budget, tree)
	if err != nil {
		return nil, err
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("%s: no folder primus/backends/*/patches, want the root of a checkout of Primus", root)
	}
	c := &Checkout{Root: root, machine: eval.New(tree)}
	c.machine.Meter = budget
	defer func() { c.machine.Meter = nil }()
	c.machine.OnCall = c.register
	for _, p := range packages {
		c.machine.Import(strings.ReplaceAll(p.dir, "/", "."))
	}
	c.machine.OnCall = nil
	c.Faults = append(c.Faults, c.machine.Faults...)
	last := map[string]int{}
	for i := range c.Records {
		if before, ok := last[c.Records[i].ID]; ok {
			c.Records[before].Effective = false
		}
		last[c.Records[i].ID] = i
	}
	c.texts(packages)
	for i := range c.Records {
		if c.machine.Spend(len(c.Records)) != nil {
			break
		}
		c.analyse(i)
	}
	if err := c.machine.Spend(0); err != nil {
		return nil, err
	}
	return c, nil
}

type patchPackage struct {
	dir   string
	files []string
}

// patchPackages returns the packages of patches of all backends with their files.
func patchPackages(budget *meter.Meter, tree fs.FS) ([]patchPackage, error) {
	dirs, err := fs.Glob(tree, "primus/backends/*/patches")
	if err != nil {
		return nil, err
	}
	var packages []patchPackage
	for _, dir := range dirs {
		p := patchPackage{dir: dir}
		err := fs.WalkDir(tree, dir, func(path string, d fs.DirEntry, err error) error {
			if err := budget.Check(); err != nil {
				return err
			}
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
func (c *Checkout) register(call *eval.Call) eval.Value {
	fn, ok := call.Func.(*eval.Function)
	if !ok || fn.Name != "register_patch" || !strings.HasPrefix(fn.Module.Name, engine) {
		return nil
	}
	return &eval.Native{Name: "register_patch", Call: func(_ *eval.Machine, decorated *eval.Call) eval.Value {
		handler, ok := decorated.Arg(0, "").(*eval.Function)
		if !ok || handler.IsLambda() {
			return nil
		}
		c.add(call, handler)
		return handler
	}}
}

func (c *Checkout) add(call *eval.Call, handler *eval.Function) {
	file := handler.Module.File
	r := Record{
		File: handler.Module.Path, Line: file.Line(defStart(file, handler.Def)), Handler: handler.Name,
		DecoratorLine: call.Module.File.Line(call.Node.Start), Effective: true, Index: len(c.Records), Priority: defaultPriority,
		Doc: docstring(handler.Def.Body),
	}
	r.BackendDir, r.Group = place(r.File)
	text := func(name string, v eval.Value) string {
		s, ok := v.(string)
		if !ok && v != nil && v != eval.None {
			r.Unknown = append(r.Unknown, name+": "+eval.Repr(v))
		}
		return s
	}
	list := func(name string) []string {
		items := []string{}
		v := call.Arg(-1, name)
		s, ok := v.(*eval.Sequence)
		if !ok || s.Open {
			text(name, v)
			return items
		}
		for _, item := range s.Items {
			items = append(items, text(name, item))
		}
		return items
	}
	r.ID = cmp.Or(text("id", call.Arg(0, "patch_id")), "unknown")
	r.Backend, r.Phase = text("backend", call.Arg(-1, "backend")), text("phase", call.Arg(-1, "phase"))
	r.Description = cmp.Or(text("description", call.Arg(-1, "description")), r.Doc)
	r.BackendVersions, r.PrimusVersions, r.Tags = list("backend_versions"), list("primus_versions"), list("tags")
	slices.Sort(r.Tags)
	r.Tags = slices.Compact(r.Tags)
	if p := call.Arg(-1, "priority"); p != nil {
		if n, ok := p.(*big.Int); ok && n.IsInt64() {
			r.Priority = int(n.Int64())
		} else {
			r.Unknown = append(r.Unknown, "priority: "+eval.Repr(p))
		}
	}
	reg := registration{handler: handler, condition: call.Arg(-1, "condition")}
	if reg.condition == eval.None {
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

// beforeDef is what may stand between the decorators of a function and its line with def.
var beforeDef = regexp.MustCompile(`^(?:[ \t\n\r)]|#[^\n]*)*`)

// defStart returns where the line with def or async def begins, after the decorators.
func defStart(file *syntax.File, def *syntax.Node) int {
	from := def.Start
	for _, d := range def.Decorators {
		from = max(from, d.End)
	}
	return from + len(beforeDef.FindString(file.Text[from:def.End]))
}

func docstring(body []*syntax.Node) string {
	if len(body) == 0 || body[0].Kind != syntax.ExprStmt {
		return ""
	}
	text, _ := body[0].Value.Str()
	return text
}

var commented = regexp.MustCompile(`^#\s*@register_patch\(`)

var quotedID = regexp.MustCompile(`^#?\s*(?:#\s*@register_patch\(\s*)?(?:patch_id\s*=\s*)?["']([^"']+)["']`)

// texts finds the registrations in comments and in files that no backend imports.
func (c *Checkout) texts(packages []patchPackage) {
	imported := map[string]*syntax.File{}
	for _, mod := range c.machine.Modules() {
		imported[mod.Path] = mod.File
	}
	for _, p := range packages {
		for _, path := range p.files {
			file, active := imported[path]
			if !active {
				var err error
				if file, err = c.machine.Parse(path); err != nil {
					c.Faults = append(c.Faults, err)
					continue
				}
				c.Inactive = append(c.Inactive, registrations(file)...)
			}
			c.Disabled = append(c.Disabled, inComments(file)...)
		}
	}
}

// inComments returns the registrations in comments; the id is on the line of the decorator or on
// the next one.
func inComments(file *syntax.File) []Disabled {
	var found []Disabled
	for i, comment := range file.Comments {
		if !commented.MatchString(comment.Text) {
			continue
		}
		d := Disabled{ID: "unknown", File: file.Name, Line: file.Line(comment.Start)}
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
func registrations(file *syntax.File) []Disabled {
	var found []Disabled
	for _, s := range file.Body {
		if s.Kind != syntax.FunctionDef {
			continue
		}
		for _, d := range s.Decorators {
			if d.Kind != syntax.Call || file.Source(d.Value) != "register_patch" {
				continue
			}
			r := Disabled{ID: "unknown", File: file.Name, Line: file.Line(d.Start)}
			if len(d.List) > 0 && d.List[0].Kind == syntax.Constant {
				r.ID, _ = d.List[0].Str()
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

// ids returns the ids of all patches, sorted.
func (c *Checkout) ids() []string {
	set := map[string]bool{}
	for i := range c.Records {
		set[c.Records[i].ID] = true
	}
	return slices.Sorted(maps.Keys(set))
}
