package eval

import (
	"io/fs"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// builtins are the names of Python that are looked up as builtins.NAME.
var builtins = add(nil, strings.Fields(`abs all any bool bytes callable classmethod delattr dict dir enumerate exec eval filter float
		frozenset getattr globals hasattr id int isinstance issubclass iter len list locals map max min next object open print property
		range repr reversed round set setattr sorted staticmethod str sum super tuple type vars zip __import__ Exception ImportError
		ModuleNotFoundError AttributeError ValueError TypeError KeyError RuntimeError NotImplementedError AssertionError OSError`))

// library returns the value of a call of a function of Python's own library, nil if it is not
// known.
func (m *Machine) library(path string, c *Call) Value {
	if name, ok := strings.CutPrefix(path, "builtins."); ok {
		return m.builtin(name, c)
	}
	first, second := c.Arg(0, ""), c.Arg(1, "")
	switch path {
	case "os.environ.get", "os.getenv":
		fallback := c.Arg(1, "default")
		if fallback == nil {
			fallback = None
		}
		if name, ok := c.Arg(0, "key").(string); ok {
			return m.variableOf(name, fallback)
		}
	case "os.environ.setdefault", "os.environ.update", "os.environ.pop":
		m.store(&Store{Base: External{"os.environ"}, method: path[len("os.environ."):], Key: c.Arg(0, "key"), Value: c.Arg(1, "default"), Module: c.Module, Node: c.Node})
	case "os.putenv":
		m.store(&Store{Base: External{"os.environ"}, Key: first, Value: second, Module: c.Module, Node: c.Node})
	case "importlib.import_module":
		name, ok := c.Arg(0, "name").(string)
		pkg, inside := c.Arg(1, "package").(string)
		switch {
		case ok && !strings.HasPrefix(name, "."):
			return m.Import(name)
		case ok && inside:
			return m.Import(pkg + name)
		}
	case "importlib.reload":
		return c.Arg(0, "module")
	case "sys.modules.get":
		if name, ok := first.(string); ok {
			return m.Import(name)
		}
	case "sys.modules.items":
		return &Opaque{Source: "sys.modules.items()", Parts: []Value{External{"sys.modules"}}}
	case "sys.modules.values":
		return &Sequence{Kind: "list", Items: []Value{External{anyModule}}, Open: true}
	case "pkgutil.walk_packages", "pkgutil.iter_modules":
		return m.packages(c, path == "pkgutil.walk_packages")
	case "inspect.getsource":
		if v := c.Arg(0, "object"); v != nil {
			return &SourceText{of: v}
		}
	case "textwrap.dedent", "textwrap.indent", "copy.copy", "copy.deepcopy":
		return first
	case "typing.cast":
		return c.Arg(len(c.Args)-1, "")
	case "types.SimpleNamespace":
		o := &Object{Attrs: map[string]Value{}}
		for i, name := range c.keywords.Keys {
			o.Attrs[name.(string)] = c.keywords.Values[i]
		}
		return o
	}
	return nil
}

// variableOf returns the value of a variable of the environment.
func (m *Machine) variableOf(name string, fallback Value) Value {
	v, ok := m.Env[name]
	switch {
	case m.Env == nil:
		return Variable{name}
	case ok:
		return v
	case fallback == nil:
		return &Opaque{Source: "os.environ[" + strconv.Quote(name) + "]"}
	}
	return fallback
}

func (m *Machine) builtin(name string, c *Call) Value {
	v, second := m.Resolve(c.Arg(0, "")), c.Arg(1, "")
	switch name {
	case "getattr":
		return m.getattr(v, c)
	case "setattr", "delattr":
		for _, key := range alternatives(second) {
			attr, ok := key.(string)
			if o, opaque := key.(*Opaque); opaque {
				attr = "<" + o.Source + ">"
			} else if !ok {
				attr = "<name>"
			}
			m.store(&Store{Base: v, Attr: attr, Value: c.Arg(2, ""), Module: c.Module, Node: c.Node})
		}
		return None
	case "hasattr":
		attr, ok := second.(string)
		if _, external := v.(External); !ok || external {
			return nil
		}
		if _, found, known := m.Attr(v, attr); known {
			return found
		}
	case "exec":
		d, ok := c.Arg(2, "locals").(*Mapping)
		if !ok {
			d, ok = c.Arg(1, "globals").(*Mapping)
		}
		if ok {
			d.Open = true
			d.put("exec", v)
			return None
		}
	case "bool":
		if v == nil {
			return false
		}
		return m.Truth(v).value()
	case "isinstance":
		return isinstance(v, second)
	case "callable":
		switch v.(type) {
		case *Function, *Class, *Native:
			return true
		case *Sequence, *Mapping:
			return false
		}
		if isConst(v) {
			return false
		}
	case "any", "all":
		return m.anyAll(name, v)
	case "len":
		n := -1
		switch v := v.(type) {
		case *Sequence:
			if !v.Open {
				n = len(v.Items)
			}
		case *Mapping:
			if !v.Open {
				n = len(v.Keys)
			}
		case string:
			n = len([]rune(v))
		}
		if n >= 0 {
			return big.NewInt(int64(n))
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
			return nil
		}
		d.putAll(&c.keywords)
		return d
	case "map", "filter":
		return m.mapped(name, c)
	case "zip", "enumerate":
		return m.zipped(name, c)
	case "property", "staticmethod", "classmethod":
		return v
	}
	return nil
}

func (m *Machine) getattr(v Value, c *Call) Value {
	attr, ok := alternatives(c.Arg(1, ""))[0].(string)
	if !ok {
		return nil
	}
	if u, ok := v.(*Union); ok {
		var values []Value
		for _, alternative := range u.of {
			one := *c
			one.Args = slices.Clone(c.Args)
			one.Args[0] = alternative
			w := m.getattr(alternative, &one)
			if w == nil {
				w = m.result(&one)
			}
			values = append(values, w)
		}
		return union(values...)
	}
	fallback := c.Arg(2, "")
	a, found, known := m.Attr(v, attr)
	switch {
	case found:
		return a
	case known || fallback == nil:
		return fallback
	}
	return union(m.result(c), fallback)
}

// constTypes are the kinds of constants that are instances of a type.
var constTypes = map[string][]string{
	"builtins.bool": {"bool"}, "builtins.int": {"int", "bool"}, "builtins.float": {"float"}, "builtins.str": {"string"},
}

func isinstance(v, of Value) Value {
	kinds := []Value{of}
	if s, ok := of.(*Sequence); ok {
		kinds = s.Items
	}
	open := false
	for _, kind := range kinds {
		path, is := PathOf(kind), false
		switch v := v.(type) {
		case *Sequence:
			is = path == "builtins."+v.Kind
		case *Mapping:
			is = path == "builtins.dict"
		case *Object:
			is = v.class != nil && kind == Value(v.class) || v.class == nil && path == "types.SimpleNamespace"
			open = open || v.class != nil
		default:
			is = isConst(v) && slices.Contains(constTypes[path], constKind(v))
			open = open || !isConst(v)
		}
		if is {
			return true
		}
	}
	if open {
		return nil
	}
	return false
}

func (m *Machine) anyAll(name string, v Value) Value {
	s, ok := v.(*Sequence)
	if !ok {
		return nil
	}
	decides := truthOf(name == "any")
	open := s.Open
	for _, item := range s.Items {
		switch m.Truth(item) {
		case decides:
			if !s.Open {
				return decides.value()
			}
		case Unknown:
			open = true
		}
	}
	if open {
		return nil
	}
	return decides.Not().value()
}

func convert(name string, v Value) Value {
	if !isConst(v) {
		return nil
	}
	switch name {
	case "str":
		return text(v)
	case "repr":
		return Repr(v)
	case "float":
		if f, ok := number(v); ok {
			n, _ := f.Float64()
			return n
		}
		return nil
	}
	switch n := v.(type) {
	case *big.Int:
		return n
	case bool, float64:
		if f, ok := number(n); ok {
			i, _ := f.Int(nil)
			return i
		}
	case string:
		if i, ok := new(big.Int).SetString(strings.TrimSpace(n), 10); ok {
			return i
		}
	}
	return nil
}

// collect returns a list of the items of a value, or a tuple or set of them.
func (m *Machine) collect(name string, v Value) Value {
	s := m.list("list")
	if name == "tuple" || name == "set" {
		s.Kind = name
	}
	if v == nil {
		return s
	}
	if open, ok := v.(*Sequence); ok && open.Open {
		s.Items, s.Open = slices.Clone(open.Items), true
		return s
	}
	if PathOf(v) == "sys.modules" {
		return v
	}
	items, known := m.iterate(v)
	if !known {
		return nil
	}
	s.Items = slices.Collect(items)
	switch name {
	case "reversed":
		slices.Reverse(s.Items)
	case "sorted":
		if slices.ContainsFunc(s.Items, func(v Value) bool { _, ok := v.(string); return !ok }) {
			return nil
		}
		slices.SortFunc(s.Items, func(a, b Value) int { return strings.Compare(a.(string), b.(string)) })
	}
	return s
}

func (m *Machine) mapped(name string, c *Call) Value {
	if len(c.Args) != 2 {
		return nil
	}
	items, known := m.iterate(c.Args[1])
	if !known {
		return nil
	}
	s := m.list("list")
	for item := range items {
		v := m.call(&Call{Func: c.Args[0], Args: []Value{item}, Module: c.Module, Node: c.Node})
		if name == "map" {
			s.Items = append(s.Items, v)
			continue
		}
		switch m.Truth(v) {
		case True:
			s.Items = append(s.Items, item)
		case Unknown:
			return nil
		}
	}
	return s
}

func (m *Machine) zipped(name string, c *Call) Value {
	var lists [][]Value
	for _, a := range c.Args {
		items, known := m.iterate(a)
		if !known {
			return nil
		}
		lists = append(lists, slices.Collect(items))
	}
	if len(lists) == 0 {
		return nil
	}
	if name == "enumerate" {
		var numbers []Value
		for i := range lists[0] {
			numbers = append(numbers, big.NewInt(int64(i)))
		}
		lists = [][]Value{numbers, lists[0]}
	}
	s := m.list("list")
	for i := range lists[0] {
		row := m.list("tuple")
		for _, list := range lists {
			if i >= len(list) {
				return s
			}
			row.Items = append(row.Items, list[i])
		}
		s.Items = append(s.Items, row)
	}
	return s
}

// walker gives the modules of a package as pkgutil does: each before it is imported, then those
// inside of it.
type walker struct{ each func(yield func(Value) bool) }

func (m *Machine) packages(c *Call, deep bool) Value {
	dirs, ok := c.Arg(0, "path").(*Sequence)
	if !ok || len(dirs.Items) != 1 {
		return nil
	}
	dir, ok := dirs.Items[0].(string)
	if !ok {
		return nil
	}
	prefix, _ := c.Arg(1, "prefix").(string)
	var walk func(dir, prefix string, yield func(Value) bool) bool
	walk = func(dir, prefix string, yield func(Value) bool) bool {
		entries, err := fs.ReadDir(m.tree, dir)
		if err != nil {
			return true
		}
		for _, e := range entries { // sorted by name, as Python's
			name, isPackage := strings.TrimSuffix(e.Name(), ".py"), false
			if e.IsDir() {
				_, err := fs.Stat(m.tree, dir+"/"+e.Name()+"/__init__.py")
				isPackage = err == nil
			}
			if name == "__init__" || strings.Contains(name, ".") || name == e.Name() && !isPackage {
				continue
			}
			found := &Object{Attrs: map[string]Value{"name": prefix + name, "ispkg": isPackage, "module_finder": &Opaque{Source: "finder"}, "dir": dir + "/" + name}}
			if !yield(found) {
				return false
			}
			if isPackage && deep {
				if m.Import(prefix + name); !walk(dir+"/"+name, prefix+name+".", yield) {
					return false
				}
			}
		}
		return true
	}
	return &walker{func(yield func(Value) bool) { walk(dir, prefix, yield) }}
}
