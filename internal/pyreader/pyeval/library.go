package pyeval

import (
	"io/fs"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// builtins are the names of Python that are looked up as builtins.NAME.
var builtins = func() map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(`abs all any bool bytes callable classmethod delattr dict dir enumerate exec eval filter float
		frozenset getattr globals hasattr id int isinstance issubclass iter len list locals map max min next object open print property
		range repr reversed round set setattr sorted staticmethod str sum super tuple type vars zip __import__ Exception ImportError
		ModuleNotFoundError AttributeError ValueError TypeError KeyError RuntimeError NotImplementedError AssertionError OSError`) {
		set[name] = true
	}
	return set
}()

// library returns the value of a call of a function of Python's own library, where it is known.
func (m *Machine) library(path string, c *Call) (Value, bool) {
	if name, ok := strings.CutPrefix(path, "builtins."); ok {
		return m.builtin(name, c)
	}
	switch path {
	case "os.environ.get", "os.getenv":
		name, ok := Str(c.Arg(0, "key"))
		fallback := c.Arg(1, "default")
		if fallback == nil {
			fallback = Const{nil}
		}
		if ok {
			return m.variableOf(name, fallback), true
		}
	case "os.environ.setdefault", "os.environ.update", "os.environ.pop":
		m.store(&Store{Base: External{"os.environ"}, Method: path[len("os.environ."):], Key: c.Arg(0, "key"), Value: c.Arg(1, "default"), Module: c.Module, Node: c.Node})
	case "os.putenv":
		m.store(&Store{Base: External{"os.environ"}, Key: c.Arg(0, ""), Value: c.Arg(1, ""), Module: c.Module, Node: c.Node})
	case "importlib.import_module", "builtins.__import__":
		if name, ok := Str(c.Arg(0, "name")); ok {
			if !strings.HasPrefix(name, ".") {
				return m.Import(name), true
			}
			if pkg, ok := Str(c.Arg(1, "package")); ok {
				return m.Import(pkg + name), true
			}
		}
	case "importlib.reload":
		return c.Arg(0, "module"), true
	case "sys.modules.get":
		if name, ok := Str(c.Arg(0, "")); ok {
			return m.Import(name), true
		}
	case "sys.modules.items":
		return &Opaque{Source: "sys.modules.items()", Parts: []Value{External{"sys.modules"}}}, true
	case "sys.modules.values":
		return &Sequence{Kind: "list", Items: []Value{External{AnyModule}}, Open: true}, true
	case "pkgutil.walk_packages", "pkgutil.iter_modules":
		return m.packages(c, path == "pkgutil.walk_packages")
	case "inspect.getsource":
		if v := c.Arg(0, "object"); v != nil {
			return &SourceText{Of: v}, true
		}
	case "textwrap.dedent", "textwrap.indent", "copy.copy", "copy.deepcopy", "typing.cast":
		if v := c.Arg(len(c.Args)-1, ""); path == "typing.cast" && v != nil {
			return v, true
		}
		if v := c.Arg(0, ""); v != nil {
			return v, true
		}
	case "types.SimpleNamespace":
		o := &Object{Attrs: map[string]Value{}}
		for _, k := range c.Keywords {
			o.Attrs[k.Name] = k.Value
		}
		return o, true
	}
	return nil, false
}

// variableOf returns the value of a variable of the environment.
func (m *Machine) variableOf(name string, fallback Value) Value {
	if m.Env == nil {
		return Variable{name}
	}
	if v, ok := m.Env[name]; ok {
		return Const{v}
	}
	if fallback == nil {
		return &Opaque{Source: "os.environ[" + strconv.Quote(name) + "]"}
	}
	return fallback
}

func (m *Machine) builtin(name string, c *Call) (Value, bool) {
	v := m.resolve(c.Arg(0, ""))
	switch name {
	case "getattr":
		return m.getattr(v, c)
	case "setattr", "delattr":
		s := &Store{Base: v, Value: c.Arg(2, ""), Module: c.Module, Node: c.Node}
		for _, key := range Alternatives(c.Arg(1, "")) {
			each := *s
			if attr, ok := Str(key); ok {
				each.Attr = attr
			} else {
				each.Attr = "<" + source(key) + ">"
			}
			m.store(&each)
		}
		return Const{nil}, true
	case "hasattr":
		attr, ok := Str(c.Arg(1, ""))
		if !ok {
			return nil, false
		}
		if _, isExternal := v.(External); isExternal {
			return nil, false
		}
		_, found, known := m.Attr(v, attr)
		if known {
			return Const{found}, true
		}
		return nil, false
	case "exec":
		if d, ok := c.Arg(2, "locals").(*Mapping); ok {
			d.Open = true
			d.put(Const{"exec"}, v)
			return Const{nil}, true
		}
		if d, ok := c.Arg(1, "globals").(*Mapping); ok {
			d.Open = true
			d.put(Const{"exec"}, v)
			return Const{nil}, true
		}
	case "bool":
		if v == nil {
			return Const{false}, true
		}
		if t := m.Truth(v); t != Unknown {
			return t.value(), true
		}
	case "isinstance":
		return m.isinstance(v, c.Arg(1, ""))
	case "callable":
		switch v.(type) {
		case *Function, *Class, *Native:
			return Const{true}, true
		case Const, *Sequence, *Mapping:
			return Const{false}, true
		}
	case "any", "all":
		return m.anyAll(name, v)
	case "len":
		switch v := v.(type) {
		case *Sequence:
			if !v.Open {
				return Const{big.NewInt(int64(len(v.Items)))}, true
			}
		case *Mapping:
			if !v.Open {
				return Const{big.NewInt(int64(len(v.Keys)))}, true
			}
		case Const:
			if s, ok := v.V.(string); ok {
				return Const{big.NewInt(int64(len([]rune(s))))}, true
			}
		}
	case "str", "repr", "int", "float":
		return convert(name, v)
	case "list", "tuple", "set", "frozenset", "sorted", "reversed", "iter":
		return m.collect(name, v)
	case "dict":
		d := &Mapping{shared: !m.running}
		if other, ok := v.(*Mapping); ok {
			d.Keys, d.Values, d.Open = slices.Clone(other.Keys), slices.Clone(other.Values), other.Open
		} else if v != nil {
			return nil, false
		}
		for _, k := range c.Keywords {
			d.put(Const{k.Name}, k.Value)
		}
		return d, true
	case "map", "filter":
		return m.mapped(name, c)
	case "zip", "enumerate":
		return m.zipped(name, c)
	case "property", "staticmethod", "classmethod":
		return v, v != nil
	}
	return nil, false
}

func source(v Value) string {
	if o, ok := v.(*Opaque); ok {
		return o.Source
	}
	return "name"
}

func (m *Machine) getattr(v Value, c *Call) (Value, bool) {
	fallback := c.Arg(2, "")
	for _, key := range Alternatives(c.Arg(1, "")) {
		attr, ok := Str(key)
		if !ok {
			return nil, false
		}
		if u, ok := v.(*Union); ok {
			var values []Value
			for _, alternative := range u.Of {
				each := *c
				each.Args = slices.Clone(c.Args)
				each.Args[0] = alternative
				if w, ok := m.getattr(alternative, &each); ok {
					values = append(values, w)
				} else {
					values = append(values, m.result(&each))
				}
			}
			return union(values...), true
		}
		a, found, known := m.Attr(v, attr)
		switch {
		case found:
			return a, true
		case known && fallback != nil:
			return fallback, true
		case fallback != nil:
			return union(m.result(c), fallback), true
		}
	}
	return nil, false
}

var constTypes = map[string][]string{
	"builtins.bool": {"bool"}, "builtins.int": {"int", "bool"}, "builtins.float": {"float"}, "builtins.str": {"string"},
}

func (m *Machine) isinstance(v, of Value) (Value, bool) {
	kinds := []Value{of}
	if s, ok := of.(*Sequence); ok {
		kinds = s.Items
	}
	open := false
	for _, kind := range kinds {
		path := PathOf(kind)
		switch v := v.(type) {
		case Const:
			if names, ok := constTypes[path]; ok && slices.Contains(names, constKind(v.V)) {
				return Const{true}, true
			}
		case *Sequence:
			if path == "builtins."+v.Kind {
				return Const{true}, true
			}
		case *Mapping:
			if path == "builtins.dict" {
				return Const{true}, true
			}
		case *Object:
			if v.Class != nil && v.Class == kind {
				return Const{true}, true
			}
			if v.Class == nil && path == "types.SimpleNamespace" {
				return Const{true}, true
			}
			if v.Class != nil {
				open = true
			}
		default:
			open = true
		}
	}
	if open {
		return nil, false
	}
	return Const{false}, true
}

func (m *Machine) anyAll(name string, v Value) (Value, bool) {
	s, ok := v.(*Sequence)
	if !ok {
		return nil, false
	}
	decides := truthOf(name == "any")
	open := s.Open
	for _, item := range s.Items {
		switch m.Truth(item) {
		case decides:
			if !s.Open {
				return decides.value(), true
			}
			open = true
		case Unknown:
			open = true
		}
	}
	if open {
		return nil, false
	}
	return decides.Not().value(), true
}

func convert(name string, v Value) (Value, bool) {
	c, ok := v.(Const)
	if !ok {
		return nil, false
	}
	switch name {
	case "str":
		return Const{text(c)}, true
	case "repr":
		return Const{Repr(c)}, true
	case "int":
		switch n := c.V.(type) {
		case *big.Int:
			return c, true
		case bool:
			if n {
				return Const{big.NewInt(1)}, true
			}
			return Const{new(big.Int)}, true
		case float64:
			if n == n && n-n == 0 {
				i, _ := big.NewFloat(n).Int(nil)
				return Const{i}, true
			}
		case string:
			if i, ok := new(big.Int).SetString(strings.TrimSpace(n), 10); ok {
				return Const{i}, true
			}
		}
	case "float":
		if f, ok := number(c.V); ok {
			n, _ := f.Float64()
			return Const{n}, true
		}
	}
	return nil, false
}

func (m *Machine) collect(name string, v Value) (Value, bool) {
	kind := name
	if !slices.Contains([]string{"tuple", "set"}, name) {
		kind = "list"
	}
	s := &Sequence{Kind: kind, shared: !m.running}
	if v == nil {
		return s, true
	}
	if open, ok := v.(*Sequence); ok && open.Open {
		s.Items, s.Open = slices.Clone(open.Items), true
		return s, true
	}
	if PathOf(v) == "sys.modules" {
		return v, true
	}
	next, known := m.iterate(v)
	if !known {
		return nil, false
	}
	for item, ok := next(); ok; item, ok = next() {
		s.Items = append(s.Items, item)
	}
	switch name {
	case "reversed":
		slices.Reverse(s.Items)
	case "sorted":
		texts := true
		for _, item := range s.Items {
			_, ok := Str(item)
			texts = texts && ok
		}
		if !texts {
			return nil, false
		}
		slices.SortFunc(s.Items, func(a, b Value) int {
			x, _ := Str(a)
			y, _ := Str(b)
			return strings.Compare(x, y)
		})
	}
	return s, true
}

func (m *Machine) mapped(name string, c *Call) (Value, bool) {
	if len(c.Args) != 2 {
		return nil, false
	}
	next, known := m.iterate(c.Args[1])
	if !known {
		return nil, false
	}
	s := &Sequence{Kind: "list", shared: !m.running}
	for item, ok := next(); ok; item, ok = next() {
		v := m.call(&Call{Func: c.Args[0], Args: []Value{item}, Module: c.Module, Node: c.Node})
		if name == "map" {
			s.Items = append(s.Items, v)
			continue
		}
		switch m.Truth(v) {
		case True:
			s.Items = append(s.Items, item)
		case Unknown:
			return nil, false
		}
	}
	return s, true
}

func (m *Machine) zipped(name string, c *Call) (Value, bool) {
	var lists [][]Value
	for _, a := range c.Args {
		next, known := m.iterate(a)
		if !known {
			return nil, false
		}
		var items []Value
		for item, ok := next(); ok; item, ok = next() {
			items = append(items, item)
		}
		lists = append(lists, items)
	}
	if len(lists) == 0 {
		return nil, false
	}
	if name == "enumerate" {
		var numbers []Value
		for i := range lists[0] {
			numbers = append(numbers, Const{big.NewInt(int64(i))})
		}
		lists = [][]Value{numbers, lists[0]}
	}
	s := &Sequence{Kind: "list", shared: !m.running}
	for i := range lists[0] {
		row := &Sequence{Kind: "tuple", shared: !m.running}
		for _, list := range lists {
			if i >= len(list) {
				return s, true
			}
			row.Items = append(row.Items, list[i])
		}
		s.Items = append(s.Items, row)
	}
	return s, true
}

// walker gives the modules of a package as pkgutil does: each before it is imported, then those
// inside of it.
type walker struct{ next func() (Value, bool) }

func (m *Machine) packages(c *Call, deep bool) (Value, bool) {
	dirs, ok := c.Arg(0, "path").(*Sequence)
	if !ok || len(dirs.Items) != 1 {
		return nil, false
	}
	dir, ok := Str(dirs.Items[0])
	if !ok {
		return nil, false
	}
	prefix, _ := Str(c.Arg(1, "prefix"))
	type pending struct{ dir, prefix string }
	var queue []Value
	var enter *pending
	list := func(dir, prefix string) []Value {
		entries, err := fs.ReadDir(m.tree, dir)
		if err != nil {
			return nil
		}
		var found []Value
		for _, e := range entries { // sorted by name, as Python's
			name, isPackage := strings.TrimSuffix(e.Name(), ".py"), false
			if e.IsDir() {
				_, err := fs.Stat(m.tree, dir+"/"+e.Name()+"/__init__.py")
				isPackage = err == nil
			}
			if name == "__init__" || strings.Contains(name, ".") || name == e.Name() && !isPackage {
				continue
			}
			found = append(found, &Object{Attrs: map[string]Value{
				"name": Const{prefix + name}, "ispkg": Const{isPackage}, "module_finder": &Opaque{Source: "finder"}, "dir": Const{dir + "/" + name},
			}})
		}
		return found
	}
	queue = list(dir, prefix)
	next := func() (Value, bool) {
		if enter != nil {
			p := *enter
			enter = nil
			m.Import(strings.TrimSuffix(p.prefix, "."))
			queue = append(list(p.dir, p.prefix), queue...)
		}
		if len(queue) == 0 {
			return nil, false
		}
		o := queue[0].(*Object)
		queue = queue[1:]
		if isPackage, _ := o.Attrs["ispkg"].(Const); deep && isPackage.V == true {
			name, _ := Str(o.Attrs["name"])
			at, _ := Str(o.Attrs["dir"])
			enter = &pending{at, name + "."}
		}
		return o, true
	}
	return &walker{next}, true
}
