package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// enum is a type with a few named values, which a switch must not take for granted to be all.
type enum struct {
	dir, name string
	members   []string
}

// enumerated are the types whose switches are checked. A new member of one of these may not be
// taken for another in silence.
var enumerated = []enum{
	{dir: "tensor", name: "DType"},
	{dir: "opregistry", name: "Kind"},
	{dir: "opregistry", name: "Access"},
	{dir: "opregistry", name: "Determinism"},
	{dir: "opmanager", name: "LayerKind"},
	{dir: "opmanager/oppolicy", name: "Phase"},
	{dir: "ops/attention", name: "MaskType"},
	{dir: "ops/attention", name: "BiasType"},
	{dir: "ops/attention", name: "SoftmaxType"},
	{dir: "ops/attention", name: "Correction"},
	{dir: "ops/collective", name: "Reduction"},
	{dir: "ops/quant", name: "AmaxComputeAlgo"},
}

// membersOf returns the exported constants of a type that the files of its package declare.
func membersOf(files []source, e enum) (members []string) {
	for _, s := range files {
		if s.dir != e.dir || s.isTest() {
			continue
		}
		for _, decl := range s.file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			typed := false
			for _, spec := range d.Specs {
				v := spec.(*ast.ValueSpec)
				if v.Type != nil || len(v.Values) > 0 {
					name, ok := v.Type.(*ast.Ident)
					typed = ok && name.Name == e.name
				}
				if typed {
					for _, name := range v.Names {
						if name.IsExported() {
							members = append(members, name.Name)
						}
					}
				}
			}
		}
	}
	return members
}

// memberName returns the name of the member that an expression in a file is, "" if it is none.
func (e enum) memberName(s source, x ast.Expr) string {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		if s.dir == e.dir && !s.isTest() {
			name = x.Name
		}
	case *ast.SelectorExpr:
		pkg, ok := x.X.(*ast.Ident)
		if ok && s.importsAs(pkg.Name, e.dir) {
			name = x.Sel.Name
		}
	}
	if slices.Contains(e.members, name) {
		return name
	}
	return ""
}

// importsAs reports whether a file has a package of the module under a name.
func (s source) importsAs(name, dir string) bool {
	for _, i := range s.imports() {
		if i.path == module+"/"+dir {
			return i.alias == name || i.alias == "" && strings.HasSuffix("/"+dir, "/"+name)
		}
	}
	return false
}

// checkSwitches returns the switches over an enum that neither name all of its members nor have a
// default that fails.
func checkSwitches(s source, e enum) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		sw, ok := n.(*ast.SwitchStmt)
		if !ok || sw.Tag == nil {
			return true
		}
		named, refuses := map[string]bool{}, false
		for _, stmt := range sw.Body.List {
			clause := stmt.(*ast.CaseClause)
			refuses = refuses || clause.List == nil && fails(clause.Body)
			for _, x := range clause.List {
				if name := e.memberName(s, x); name != "" {
					named[name] = true
				}
			}
		}
		if len(named) == 0 || len(named) == len(e.members) || refuses {
			return true
		}
		var missing []string
		for _, m := range e.members {
			if !named[m] {
				missing = append(missing, m)
			}
		}
		found = append(found, fmt.Sprintf("%s:%d: the switch over %s.%s leaves out %s: name them, or fail in the default", s.where(), s.fset.Position(sw.Pos()).Line, e.dir, e.name, strings.Join(missing, ", ")))
		return true
	})
	return found
}

// fails reports whether statements end with a panic, by declining a call or by returning an error.
func fails(body []ast.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	switch last := body[len(body)-1].(type) {
	case *ast.ExprStmt:
		call, ok := last.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			return f.Name == "panic"
		case *ast.SelectorExpr:
			return f.Sel.Name == "Decline"
		}
	case *ast.ReturnStmt:
		if len(last.Results) == 0 {
			return false
		}
		switch x := last.Results[len(last.Results)-1].(type) {
		case *ast.CallExpr: // of what makes the error
			return true
		case *ast.Ident:
			return strings.HasPrefix(x.Name, "err")
		}
	}
	return false
}

func TestSwitchesOverEnums(t *testing.T) {
	t.Parallel()
	files := tree(t)
	for _, e := range enumerated {
		e.members = membersOf(files, e)
		assert.NotEmpty(t, e.members, e.name)
		for _, s := range files {
			if s.isTest() {
				continue
			}
			for _, violation := range checkSwitches(s, e) {
				t.Error(violation)
			}
		}
	}
}

func TestSwitchesOverEnumsFindViolations(t *testing.T) {
	t.Parallel()
	declared := parse(t, "tensor/dtype.go", "package tensor\ntype DType uint8\nconst (\n\tUnspecified DType = iota\n\tF32\n\tF16\n)\nconst Max = 3")
	e := enum{dir: "tensor", name: "DType"}
	e.members = membersOf([]source{declared}, e)
	assert.Equal(t, []string{"Unspecified", "F32", "F16"}, e.members)
	for body, ok := range map[string]bool{
		"case tensor.F32:":                                                   false,
		"case tensor.F32: return nil\ndefault:":                              false,
		"case tensor.F32: return nil\ndefault: return nil":                   false,
		"case tensor.F32: return nil\ndefault: log.Print(d)":                 false,
		"case tensor.F32, tensor.F16:":                                       false,
		"case tensor.F32, tensor.F16: return nil\ncase tensor.Unspecified:":  true,
		"case tensor.F32: return nil\ndefault: panic(d)":                     true,
		"case tensor.F32: return nil\ndefault: v.Decline(\"dtype %v\", d)":   true,
		"case tensor.F32: return nil\ndefault: return fmt.Errorf(\"%v\", d)": true,
		"case tensor.F32: return nil\ndefault: return err":                   true,
		"case other.F32: return nil":                                         true,
	} {
		s := parse(t, "opmanager/a.go", "package p\nimport \""+module+"/tensor\"\nfunc f(d tensor.DType) error {\nswitch d {\n"+body+"\n}\nreturn nil\n}")
		assert.Equal(t, ok, len(checkSwitches(s, e)) == 0, body)
	}
}
