package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// aliasOf returns the only name besides its own under which a package of the module may be
// imported.
func aliasOf(target string) string {
	family, base := path.Dir(target), path.Base(target)
	for path.Base(family) == "internal" && family != "internal" {
		family = path.Dir(family)
	}
	switch {
	case family == "internal/kernel":
		return "kernel"
	case family == "ops":
		return base + "ops"
	default:
		return path.Base(family) + base
	}
}

// names returns the names that a package declares at its top level, by folder.
func names(files []source) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, s := range files {
		if all[s.dir] == nil {
			all[s.dir] = map[string]bool{}
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				all[s.dir][d.Name.Name] = all[s.dir][d.Name.Name] || d.Recv == nil
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch v := spec.(type) {
					case *ast.TypeSpec:
						all[s.dir][v.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range v.Names {
							all[s.dir][name.Name] = true
						}
					}
				}
			}
		}
	}
	return all
}

// uses reports whether a file has something of a name that is not the member or key of something
// else.
func uses(s source, name string) bool {
	members := map[*ast.Ident]bool{}
	found := false
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			members[n.Sel] = true
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				members[key] = true
			}
		case *ast.Field:
			if _, ok := n.Type.(*ast.StructType); ok {
				return true
			}
		case *ast.Ident:
			found = found || n.Name == name && !members[n] && n != s.file.Name
		}
		return true
	})
	return found
}

// checkAliases returns the imports of a file from the module that have another name than their
// package without need, or an unusual one.
func checkAliases(s source, declared map[string]bool) []string {
	bases := map[string]int{}
	for _, i := range s.imports() {
		if i.alias == "" {
			bases[path.Base(i.path)]++
		}
	}
	var found []string
	for _, i := range s.imports() {
		if i.alias == "" || i.alias == "_" || i.path == module || !inside(i.path, module) {
			continue
		}
		target, base := i.path[len(module)+1:], path.Base(i.path)
		want := aliasOf(target)
		switch {
		case i.alias != want:
			found = append(found, fmt.Sprintf("%s: imports %s as %s, want %s or %s", s.where(), target, i.alias, base, want))
		case want != "kernel" && bases[base] == 0 && !declared[base] && !uses(s, base):
			found = append(found, fmt.Sprintf("%s: imports %s as %s, but nothing else in the file is called %s: use that name", s.where(), target, i.alias, base))
		}
	}
	return found
}

func TestAliases(t *testing.T) {
	t.Parallel()
	files := tree(t)
	declared := names(files)
	for _, s := range files {
		for _, violation := range checkAliases(s, declared[s.dir]) {
			t.Error(violation)
		}
	}
}

func TestAliasesFindViolations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, imports, body string
		want                []string
	}{
		{"its own name", `"M/ops/norm"`, "", nil},
		{"without need", `normops "M/ops/norm"`, "", []string{"a/a.go: imports ops/norm as normops, but nothing else in the file is called norm: use that name"}},
		{"a variable", `normops "M/ops/norm"`, "func f(norm int) int { return norm }", nil},
		{"a member", `normops "M/ops/norm"`, "func f(a struct{ x int }) { _ = a.norm }", []string{"a/a.go: imports ops/norm as normops, but nothing else in the file is called norm: use that name"}},
		{"another package", `normops "M/ops/norm"; "M/impls/flagos/norm"`, "", nil},
		{"an unusual name", `n "M/ops/norm"`, "var norm int", []string{"a/a.go: imports ops/norm as n, want norm or normops"}},
		{"a kernel", `kernel "M/internal/kernel/layers"`, "", nil},
		{"elsewhere", `norm2 "example.org/norm"`, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := parse(t, "a/a.go", "package a\nimport ("+replaceModule(tt.imports)+")\n"+tt.body)
			assert.Equal(t, tt.want, checkAliases(s, nil))
		})
	}
}

// replaceModule writes the path of the module in place of M.
func replaceModule(imports string) string { return strings.ReplaceAll(imports, `"M/`, `"`+module+"/") }
