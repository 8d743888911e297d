package pyreader

import (
	"math/big"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pyeval"
	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

func integer(v pyeval.Value) (int, bool) {
	c, ok := v.(pyeval.Const)
	if !ok {
		return 0, false
	}
	n, ok := c.V.(*big.Int)
	if !ok || !n.IsInt64() {
		return 0, false
	}
	return int(n.Int64()), true
}

// analyse runs the handler of a record to see what it changes.
func (c *Checkout) analyse(i int) {
	r, reg := &c.Records[i], c.handlers[i]
	e := &effects{machine: c.machine, list: []Effect{}}
	c.machine.Hooks.Store, c.machine.Hooks.Call, c.machine.Hopeful = e.store, e.call, true
	c.machine.Run(reg.handler, c.context(r, pyeval.Argument{}))
	c.machine.Hooks.Store, c.machine.Hooks.Call, c.machine.Hopeful = nil, nil, false
	r.Effects = e.list
	r.Symbols, r.Styles = summarise(e.list)
	if reg.condition != nil {
		r.Condition = c.condition(r, reg)
	}
}

// context returns what handlers and conditions are given.
func (c *Checkout) context(r *Record, args pyeval.Value) pyeval.Value {
	module := &pyeval.Object{Open: true, Attrs: map[string]pyeval.Value{"params": args}}
	extra := &pyeval.Mapping{
		Keys:   []pyeval.Value{pyeval.Const{V: "module_config"}, pyeval.Const{V: "backend_args"}, pyeval.Const{V: "args"}, pyeval.Const{V: "primus_config"}},
		Values: []pyeval.Value{module, args, args, &pyeval.Object{Open: true, Attrs: map[string]pyeval.Value{}}},
		Open:   true,
	}
	return &pyeval.Object{Open: true, Attrs: map[string]pyeval.Value{
		"backend": pyeval.Const{V: r.Backend}, "phase": pyeval.Const{V: r.Phase}, "extra": extra,
		"primus_version": pyeval.Const{V: nil}, "platform": pyeval.Const{V: nil},
	}}
}

// effects collects what a handler changes.
type effects struct {
	machine *pyeval.Machine
	list    []Effect
}

// mutators are methods that change their object.
var mutators = []string{"append", "extend", "insert", "add", "update", "setdefault", "pop", "remove", "clear", "discard"}

// call records calls of methods that change something external.
func (e *effects) call(c *pyeval.Call) (pyeval.Value, bool) {
	path := e.setter(c)
	if x, ok := c.Func.(pyeval.External); ok {
		path = x.Path
	}
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 || !slices.Contains(mutators, path[dot+1:]) || c.Node == nil || strings.HasPrefix(path, "os.environ") {
		return nil, false
	}
	effect := Effect{Kind: "mutate", Target: path[:dot], Style: Mutate, File: c.Module.Path, Line: c.Module.File.Line(c.Node.Start)}
	if len(c.Args) > 0 {
		effect.By = pyeval.Repr(c.Args[len(c.Args)-1])
	}
	if strings.Contains(path, "_primus") || path[:dot] == "sys.path" || strings.HasPrefix(path, "<") {
		return nil, false
	}
	e.add(effect)
	return nil, false
}

// setter records methods of objects from libraries that set something, such as setLevel of a
// logger.
func (e *effects) setter(c *pyeval.Call) string {
	o, ok := c.Func.(*pyeval.Opaque)
	if !ok || c.Node == nil || len(o.Parts) == 0 {
		return ""
	}
	attr, ok := c.Node.Func.(*pysource.Attribute)
	if path := pyeval.PathOf(o); ok && path == "logging.getLogger" && strings.HasPrefix(attr.Attr, "set") {
		e.add(Effect{Kind: "mutate", Target: pyeval.Repr(o.Parts[0]) + "." + attr.Attr, Style: Mutate,
			File: c.Module.Path, Line: c.Module.File.Line(c.Node.Start)})
	}
	return ""
}

// store records a change.
func (e *effects) store(s *pyeval.Store) {
	effect := Effect{Alternative: s.Alternative, File: s.Module.Path}
	if s.Node != nil {
		effect.Line = s.Module.File.Line(s.Node.Range().Start)
	}
	if s.Value != nil {
		effect.By = pyeval.Repr(s.Value)
	}
	switch base := s.Base.(type) {
	case pyeval.Argument:
		if s.Attr == "" {
			return
		}
		effect.Kind, effect.Style, effect.Target = "arg", Arg, strings.TrimPrefix(base.Path+"."+s.Attr, ".")
	case pyeval.External:
		external(e.machine, &effect, base.Path, s)
	case *pyeval.Class:
		effect.Kind, effect.Target = "primus", base.Path()+"."+s.Attr
	case *pyeval.Module:
		effect.Kind, effect.Target = "primus", base.Name+"."+s.Attr
	default:
		return
	}
	e.add(effect)
}

// external describes a change of something in a library.
func external(machine *pyeval.Machine, effect *Effect, path string, s *pyeval.Store) {
	key, _ := pyeval.Str(s.Key)
	switch {
	case path == "os.environ":
		effect.Kind, effect.Style, effect.Target = "env", Env, key
	case path == "sys.modules" && s.Attr == "":
		effect.Kind, effect.Style, effect.Target = "sys.modules", Modules, key
		if key == "" {
			effect.Target = pyeval.Repr(s.Key)
		}
	case s.Attr == "":
		effect.Kind, effect.Style, effect.Target = "item", Item, path+"["+pyeval.Repr(s.Key)+"]"
	case strings.Contains(path, fields):
		class, field, _ := strings.Cut(path, fields)
		effect.Kind, effect.Style, effect.Target = "mutate", Mutate, class+"."+strings.TrimSuffix(field, "]")+"."+s.Attr
	case s.Value == nil:
		effect.Kind, effect.Style, effect.Target = "delete", Mutate, path+"."+s.Attr
	default:
		effect.Target = path + "." + s.Attr
		rebind(machine, effect, path, s)
	}
}

// fields is the name of the attribute with the fields of a dataclass, whose defaults may be
// changed.
const fields = ".__dataclass_fields__["

// rebind distinguishes replacements, wrappers, and values that only mark or keep something.
func rebind(machine *pyeval.Machine, effect *Effect, base string, s *pyeval.Store) {
	if old, ok := s.Value.(pyeval.External); ok && strings.HasPrefix(old.Path, base+".") {
		effect.Kind = "stash"
		return
	}
	effect.Kind, effect.Style = "rebind", Replace
	if fn, ok := machine.Resolve(s.Value).(*pyeval.Function); ok && len(fn.Parts) == 0 {
		effect.function = fn
	}
	machine.Inside(s.Value, func(v pyeval.Value) {
		switch v := v.(type) {
		case pyeval.External:
			if (v.Path == effect.Target || v.Path == base+".*") && effect.Style == Replace {
				effect.Style = Wrap
			}
		case *pyeval.SourceText:
			if len(v.Anchors) == 0 {
				return
			}
			effect.Style = Rewrite
			effect.Anchors = append(effect.Anchors, v.Anchors...)
		}
	})
	if effect.Style != Rewrite && marker(s) {
		effect.Kind, effect.Style = "marker", ""
	}
}

// marker reports whether a store only records that something was patched.
func marker(s *pyeval.Store) bool {
	return strings.Contains(s.Attr, "_primus") || strings.HasPrefix(s.Attr, "_") && strings.HasSuffix(s.Attr, "_patched")
}

func (e *effects) add(effect Effect) {
	same := func(other Effect) bool {
		return other.Kind == effect.Kind && other.Target == effect.Target && other.Style == effect.Style && other.By == effect.By
	}
	if !slices.ContainsFunc(e.list, same) {
		e.list = append(e.list, effect)
	}
}

// summarise returns the symbols that effects change, sorted, and their styles.
func summarise(effects []Effect) (symbols []string, found []Style) {
	symbols, found = []string{}, []Style{}
	has := map[Style]bool{}
	for _, e := range effects {
		if e.Style == "" || e.Alternative {
			continue
		}
		if e.Style != Arg && e.Style != Env && !strings.Contains(e.Target, "(") {
			symbols = append(symbols, e.Target)
		}
		has[e.Style] = true
	}
	slices.Sort(symbols)
	symbols = slices.Compact(symbols)
	if len(has) == 0 {
		has[Lifecycle] = true
	}
	for _, s := range styles {
		if has[s] {
			found = append(found, s)
		}
	}
	return symbols, found
}
