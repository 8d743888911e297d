package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// unfinished matches the marks that people leave in comments for later.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// suffixes matches the names of files that have only a suffix with a meaning for Go beside the name
// of their package.
var suffixes = regexp.MustCompile(`^((amd64|arm64|linux|darwin|windows|unix|other)_)?(amd64|arm64|linux|darwin|windows|unix|other|test)\.go$`)

// checkStyle returns what breaks the rules that hold for every file.
func checkStyle(s source) []string {
	var found []string
	add := func(n ast.Node, text string) {
		found = append(found, fmt.Sprintf("%s:%d: %s", s.where(), s.fset.Position(n.Pos()).Line, text))
	}
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			add(f, "func init: set up explicitly, from cmd")
		}
	}
	for _, group := range s.file.Comments {
		for _, comment := range group.List {
			if mark := unfinished.FindString(comment.Text); mark != "" {
				add(comment, mark+" in a comment: finish it or file an issue")
			}
		}
	}
	if rest, ok := strings.CutPrefix(s.name, strings.TrimSuffix(path.Base(s.dir), "test")+"_"); ok && !suffixes.MatchString(rest) {
		add(s.file.Name, "the name of the file repeats that of its package: call it "+rest)
	}
	clash := s.dir == "runtime"
	for _, i := range s.imports() {
		clash = clash || i.path == module+"/runtime"
	}
	for n, i := range s.imports() {
		if (i.path == "text/template" || i.path == "html/template") && !s.isTest() {
			add(s.file.Imports[n], i.path+" calls methods by name, so that the linker keeps every exported method of a program: fill the text in by hand")
		}
		if clash && i.path == "runtime" && i.alias != "goruntime" {
			add(s.file.Imports[n], `the standard "runtime" is imported as goruntime beside ours`)
		}
	}
	if inside(s.dir, "cmd") && !s.isTest() {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && looksUpParam(call) {
				add(call, "a parameter is read by its name before patches change it: let its backend give a typed value, as by backend.InProcess")
			}
			return true
		})
	}
	return found
}

// looksUpParam reports whether a call is that of Lookup or Get of a field Params.
func looksUpParam(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Lookup" && method.Sel.Name != "Get" {
		return false
	}
	field, ok := method.X.(*ast.SelectorExpr)
	return ok && field.Sel.Name == "Params"
}

// checkPackageComments returns the packages without a package comment.
func checkPackageComments(files []source) []string {
	documented := make(map[string]bool)
	for _, s := range files {
		if !s.isTest() {
			documented[s.dir] = documented[s.dir] || s.file.Doc != nil
		}
	}
	var found []string
	for dir, ok := range documented {
		if !ok {
			found = append(found, dir+": no package comment: add doc.go")
		}
	}
	sort.Strings(found)
	return found
}

// checkSubjects returns the comments that begin with the name of another declaration of the package
// than the one below them.
func checkSubjects(files []source) []string {
	declared := map[string]map[string]bool{} // the names by package
	for _, s := range files {
		all := declared[s.unit()]
		if all == nil {
			all = map[string]bool{}
			declared[s.unit()] = all
		}
		for _, decl := range s.file.Decls {
			for _, name := range namesOf(decl) {
				all[name] = true
			}
		}
	}
	var found []string
	for _, s := range files {
		check := func(doc *ast.CommentGroup, own []string) {
			subject, _, _ := strings.Cut(strings.TrimSpace(doc.Text()), " ")
			if declared[s.unit()][subject] && !slices.Contains(own, subject) {
				found = append(found, fmt.Sprintf("%s:%d: the comment names %s and stands on %s", s.where(), s.fset.Position(doc.Pos()).Line, subject, strings.Join(own, ", ")))
			}
		}
		for _, decl := range s.file.Decls {
			own := namesOf(decl)
			switch d := decl.(type) {
			case *ast.FuncDecl:
				check(d.Doc, own)
			case *ast.GenDecl:
				if d.Lparen.IsValid() {
					continue // what is said of several begins with any word
				}
				check(d.Doc, own)
			}
		}
	}
	return found
}

// namesOf returns the names that a declaration declares.
func namesOf(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		names = append(names, d.Name.Name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

func TestStyle(t *testing.T) {
	t.Parallel()
	files := tree(t)
	for _, violation := range checkSubjects(files) {
		t.Error(violation)
	}
	for _, s := range files {
		for _, violation := range checkStyle(s) {
			t.Error(violation)
		}
	}
	for _, violation := range checkPackageComments(files) {
		t.Error(violation)
	}
}

func TestStyleFindsViolations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, where, text string
		want              []string
	}{
		{"clean", "a/a.go", "package a\n\n// F is done.\nfunc F() {}\n\ntype t int\n\nfunc (t) init() {}\n", nil},
		{"name", "a/norm/norm_rows.go", "package norm\n", []string{"a/norm/norm_rows.go:1: the name of the file repeats that of its package: call it rows.go"}},
		{"name of a kit", "a/normtest/norm_cases.go", "package normtest\n", []string{"a/normtest/norm_cases.go:1: the name of the file repeats that of its package: call it cases.go"}},
		{"name of a test", "a/norm/norm_test.go", "package norm\n", nil},
		{"name of a system", "a/norm/norm_amd64.go", "package norm\n", nil},
		{"init", "a/a.go", "package a\n\nfunc init() {}\n", []string{"a/a.go:3: func init: set up explicitly, from cmd"}},
		{"mark", "a/a.go", "package a\n\nvar x = 1 // TO" + "DO: more\n", []string{"a/a.go:3: TO" + "DO in a comment: finish it or file an issue"}},
		{"mark in a string", "a/a.go", "package a\n\nvar x = \"TO" + "DO\"\n", nil},
		{"template", "a/a.go", "package a\n\nimport \"text/template\"\n", []string{"a/a.go:3: text/template calls methods by name, so that the linker keeps every exported method of a program: fill the text in by hand"}},
		{"template in a test", "a/a_test.go", "package a\n\nimport \"text/template\"\n", nil},
		{"parameter", "cmd/a/a.go", "package a\n\nvar v, _ = m.Params.Lookup(\"device\")\n", []string{
			"cmd/a/a.go:3: a parameter is read by its name before patches change it: let its backend give a typed value, as by backend.InProcess"}},
		{"parameter in a backend", "runtime/a/a.go", "package a\n\nvar v, _ = m.Params.Lookup(\"device\")\n", nil},
		{"parameters as a whole", "cmd/a/a.go", "package a\n\nvar v = f(m.Params)\n", nil},
		{"runtime", "a/a.go", "package a\n\nimport (\n\t\"runtime\"\n\n\t\"" + module + "/runtime\"\n)\n", []string{`a/a.go:4: the standard "runtime" is imported as goruntime beside ours`}},
		{"runtime with its name", "a/a.go", "package a\n\nimport (\n\tgoruntime \"runtime\"\n\n\t\"" + module + "/runtime\"\n)\n", nil},
		{"runtime alone", "a/a.go", "package a\n\nimport \"runtime\"\n", nil},
		{"runtime in ours", "runtime/a.go", "package runtime\n\nimport \"runtime\"\n", []string{`runtime/a.go:3: the standard "runtime" is imported as goruntime beside ours`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, checkStyle(parse(t, tt.where, tt.text)))
		})
	}
	subjects := []source{
		parse(t, "a/a.go", "package a\n\n// g is done.\nfunc f() {}\n\n// F is done, and g.\ntype F int\n\n// m is done.\nfunc (F) m() {}\n"),
		parse(t, "a/b.go", "package a\n\n// g is done.\nfunc g() {}\n\n// m is done.\nvar x = 3\n\n// m and others.\nconst (\n\ty = 1\n)\n"),
		parse(t, "a/a_test.go", "package a_test\n\n// g is of another package.\nfunc f() {}\n"),
	}
	assert.Equal(t, []string{"a/a.go:3: the comment names g and stands on f", "a/b.go:6: the comment names m and stands on x"}, checkSubjects(subjects))
	bare := parse(t, "a/a.go", "package a\n")
	documented := parse(t, "a/doc.go", "// Package a is documented.\npackage a\n")
	test := parse(t, "b/b_test.go", "package b\n")
	assert.Equal(t, []string{"a: no package comment: add doc.go"}, checkPackageComments([]source{bare, test}))
	assert.Empty(t, checkPackageComments([]source{bare, documented, test}))
}
