package pyreader

import (
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/eval"
	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// analyse runs the handler of a record to see what it changes.
func (c *Checkout) analyse(i int) {
	r, reg := &c.Records[i], c.handlers[i]
	e := &effects{machine: c.machine, list: []Effect{}}
	c.machine.OnStore, c.machine.OnCall, c.machine.Hopeful = e.store, e.call, true
	c.machine.Run(reg.handler, c.context(r, eval.Argument{}))
	c.machine.OnStore, c.machine.OnCall, c.machine.Hopeful = nil, nil, false
	r.Effects = e.list
	r.Symbols, r.Styles = summarise(e.list)
	if reg.condition != nil {
		r.Condition = c.condition(r, reg)
	}
}

// context returns what handlers and conditions are given.
func (c *Checkout) context(r *Record, args eval.Value) *eval.Object {
	object := func(attrs map[string]eval.Value) *eval.Object { return &eval.Object{Open: true, Attrs: attrs} }
	extra := &eval.Mapping{
		Keys:   []eval.Value{"module_config", "backend_args", "args", "primus_config"},
		Values: []eval.Value{object(map[string]eval.Value{"params": args}), args, args, object(map[string]eval.Value{})},
		Open:   true,
	}
	return object(map[string]eval.Value{"backend": r.Backend, "phase": r.Phase, "extra": extra, "primus_version": eval.None, "platform": eval.None})
}

// effects collects what a handler changes.
type effects struct {
	machine *eval.Machine
	list    []Effect
}

// mutators are methods that change their object.
var mutators = []string{"append", "extend", "insert", "add", "update", "setdefault", "pop", "remove", "clear", "discard"}

// call records calls of methods that change something external.
func (e *effects) call(c *eval.Call) eval.Value {
	if c.Node == nil {
		return nil
	}
	effect := Effect{Kind: "mutate", Style: Mutate, File: c.Module.Path, Line: c.Module.File.Line(c.Node.Start)}
	switch fn := c.Func.(type) {
	case *eval.Opaque: // a method of an object from a library, such as setLevel of a logger
		if attr := c.Node.Value; attr.Kind == syntax.Attribute && eval.PathOf(fn) == "logging.getLogger" && strings.HasPrefix(attr.Name, "set") {
			effect.Target = eval.Repr(fn.Parts[0]) + "." + attr.Name
			e.add(effect)
		}
	case eval.External:
		dot := max(strings.LastIndexByte(fn.Path, '.'), 0)
		if effect.Target = fn.Path[:dot]; !slices.Contains(mutators, strings.TrimPrefix(fn.Path[dot:], ".")) || dot == 0 ||
			strings.HasPrefix(fn.Path, "os.environ") || strings.Contains(fn.Path, "_primus") || effect.Target == "sys.path" || strings.HasPrefix(fn.Path, "<") {
			return nil
		}
		if len(c.Args) > 0 {
			effect.By = eval.Repr(c.Args[len(c.Args)-1])
		}
		e.add(effect)
	}
	return nil
}

// store records a change.
func (e *effects) store(s *eval.Store) {
	effect := Effect{Alternative: s.Alternative, File: s.Module.Path}
	if s.Node != nil {
		effect.Line = s.Module.File.Line(s.Node.Start)
	}
	if s.Value != nil {
		effect.By = eval.Repr(s.Value)
	}
	switch base := s.Base.(type) {
	case eval.Argument:
		if s.Attr == "" {
			return
		}
		effect.Kind, effect.Style, effect.Target = "arg", Arg, strings.TrimPrefix(base.Path+"."+s.Attr, ".")
	case eval.External:
		external(e.machine, &effect, base.Path, s)
	case *eval.Class:
		effect.Kind, effect.Target = "primus", base.Path()+"."+s.Attr
	case *eval.Module:
		effect.Kind, effect.Target = "primus", base.Name+"."+s.Attr
	default:
		return
	}
	e.add(effect)
}

// external describes a change of something in a library.
func external(machine *eval.Machine, effect *Effect, path string, s *eval.Store) {
	key, _ := s.Key.(string)
	switch {
	case path == "os.environ":
		effect.Kind, effect.Style, effect.Target = "env", Env, key
	case path == "sys.modules" && s.Attr == "":
		effect.Kind, effect.Style, effect.Target = "sys.modules", Modules, key
		if key == "" {
			effect.Target = eval.Repr(s.Key)
		}
	case s.Attr == "":
		effect.Kind, effect.Style, effect.Target = "item", Item, path+"["+eval.Repr(s.Key)+"]"
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
func rebind(machine *eval.Machine, effect *Effect, base string, s *eval.Store) {
	if old, ok := s.Value.(eval.External); ok && strings.HasPrefix(old.Path, base+".") {
		effect.Kind = "stash"
		return
	}
	effect.Kind, effect.Style = "rebind", Replace
	if fn, ok := machine.Resolve(s.Value).(*eval.Function); ok && len(fn.Parts) == 0 {
		effect.function = fn
	}
	machine.Inside(s.Value, func(v eval.Value) {
		switch v := v.(type) {
		case eval.External:
			if (v.Path == effect.Target || v.Path == base+".*") && effect.Style == Replace {
				effect.Style = Wrap
			}
		case *eval.SourceText:
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
func marker(s *eval.Store) bool {
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
