package main

import (
	"fmt"
	"go/constant"
	"go/types"
	"strings"
)

// describer writes the lines of a package.
type describer struct {
	pkg    *types.Package
	module string
	marked map[string]bool // deprecated names
	lines  []string
}

// describe returns a line for everything that a package exports.
func describe(pkg *types.Package, module string, marked map[string]bool) []string {
	d := &describer{pkg: pkg, module: module, marked: marked}
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		if !scope.Lookup(name).Exported() {
			continue
		}
		switch o := scope.Lookup(name).(type) {
		case *types.Const:
			value := o.Val().ExactString()
			if o.Val().Kind() == constant.Float {
				value = o.Val().String()
			}
			of := " " + d.text(o.Type())
			if b, ok := o.Type().(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
				of = ""
			}
			d.add(name, "const %s%s = %s", name, of, value)
		case *types.Var:
			d.add(name, "var %s %s", name, d.text(o.Type()))
		case *types.Func:
			d.add(name, "func %s", d.function(name, o.Signature()))
		case *types.TypeName:
			d.declared(o)
		}
	}
	return d.lines
}

// add adds a line about a name.
func (d *describer) add(name, format string, args ...any) {
	line := "pkg " + d.short(d.pkg) + ", " + fmt.Sprintf(format, args...)
	if d.marked[name] {
		line += " //deprecated"
	}
	d.lines = append(d.lines, line)
}

// short returns the path of a package without that of the module.
func (d *describer) short(p *types.Package) string { return strings.TrimPrefix(p.Path(), d.module+"/") }

// text writes a type as other packages see it.
func (d *describer) text(t types.Type) string {
	return types.TypeString(unnamed(t), func(p *types.Package) string {
		if p == d.pkg {
			return ""
		}
		return d.short(p)
	})
}

// unnamed returns a type without the names of parameters and results, which a caller does not see.
func unnamed(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, unnamedTuple(t.Params()), unnamedTuple(t.Results()), t.Variadic())
	case *types.Pointer:
		return types.NewPointer(unnamed(t.Elem()))
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	case *types.Map:
		return types.NewMap(t.Key(), unnamed(t.Elem()))
	default:
		return t
	}
}

func unnamedTuple(t *types.Tuple) *types.Tuple {
	var all []*types.Var
	for v := range t.Variables() {
		all = append(all, types.NewParam(0, nil, "", unnamed(v.Type())))
	}
	return types.NewTuple(all...)
}

// function writes a function of a name, with its type parameters.
func (d *describer) function(name string, s *types.Signature) string {
	return name + d.parameters(s.TypeParams()) + strings.TrimPrefix(d.text(s), "func")
}

// parameters writes type parameters in brackets, "" if there are none.
func (d *describer) parameters(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var all []string
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+d.text(p.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// declared adds the lines of a type.
func (d *describer) declared(o *types.TypeName) {
	name := o.Name()
	if alias, ok := o.Type().(*types.Alias); ok {
		d.add(name, "type %s%s = %s", name, d.parameters(alias.TypeParams()), d.text(alias.Rhs()))
		return
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		return
	}
	full := name + d.parameters(named.TypeParams())
	switch t := named.Underlying().(type) {
	case *types.Struct:
		d.add(name, "type %s struct", full)
		d.fields(name, t)
	case *types.Interface:
		d.interfaced(name, full, t)
		return
	default:
		d.add(name, "type %s %s", full, d.text(t))
	}
	d.methods(name, named)
}

// fields adds the exported fields of a struct, and those of structs of unexported types in it.
func (d *describer) fields(name string, s *types.Struct) {
	for f := range s.Fields() {
		switch {
		case f.Embedded() && f.Exported():
			d.add(name, "type %s struct, embedded %s", name, d.text(f.Type()))
		case f.Exported():
			d.add(name, "type %s struct, %s %s", name, f.Name(), d.text(f.Type()))
		case f.Embedded():
			t := f.Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			if inner, ok := t.Underlying().(*types.Struct); ok {
				d.fields(name, inner)
			}
		}
	}
}

// interfaced adds the methods of an interface.
func (d *describer) interfaced(name, full string, t *types.Interface) {
	sealed := ""
	for m := range t.Methods() {
		if !m.Exported() {
			sealed = ", unexported methods"
		}
	}
	if !t.IsMethodSet() {
		d.add(name, "type %s %s", full, d.text(t))
		return
	}
	d.add(name, "type %s interface%s", full, sealed)
	for m := range t.Methods() {
		if m.Exported() {
			d.add(name, "type %s interface, %s", name, d.function(m.Name(), m.Signature()))
		}
	}
}

// methods adds the exported methods of a type, also those of embedded fields of unexported types.
func (d *describer) methods(name string, t *types.Named) {
	byValue := types.NewMethodSet(t)
	set := types.NewMethodSet(types.NewPointer(t))
	for s := range set.Methods() {
		if !s.Obj().Exported() || promotedByExported(t, s.Index()) {
			continue
		}
		star := "*"
		if byValue.Lookup(s.Obj().Pkg(), s.Obj().Name()) != nil {
			star = ""
		}
		f := s.Obj().(*types.Func)
		d.add(name+"."+f.Name(), "method (%s%s) %s", star, name, d.function(f.Name(), f.Signature()))
	}
}

// promotedByExported reports whether a method comes from an embedded field that is listed itself.
func promotedByExported(t *types.Named, index []int) bool {
	if len(index) == 1 {
		return false
	}
	s, ok := t.Underlying().(*types.Struct)
	return ok && s.Field(index[0]).Exported()
}
