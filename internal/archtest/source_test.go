package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/primus-fl/primus"

// source is one Go file of the module.
type source struct {
	dir  string // of the package, relative to the module, with slashes
	name string
	fset *token.FileSet
	file *ast.File
}

// imported is one import of a file: the imported package and its name in the file.
type imported struct {
	path, alias string
}

func (s source) where() string { return path.Join(s.dir, s.name) }

// unit names the package of the file: a folder may hold the external test of its package as well.
func (s source) unit() string { return s.dir + " " + s.file.Name.Name }

func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// isKit reports whether the file belongs to a package that helps tests.
func (s source) isKit() bool { return strings.HasSuffix(s.file.Name.Name, "test") }

func (s source) imports() []imported {
	var all []imported
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it
		}
		alias := ""
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		all = append(all, imported{path: p, alias: alias})
	}
	return all
}

// inside reports whether a folder or import path is root or lies below it.
func inside(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

func insideAny(p string, roots []string) bool {
	for _, root := range roots {
		if inside(p, root) {
			return true
		}
	}
	return false
}

// parse reads one file from text.
func parse(t *testing.T, where, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, where, text, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return source{dir: path.Dir(where), name: path.Base(where), fset: fset, file: file}
}

// tree reads all Go files of the module.
func tree(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if p != root && skipped(p, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		where, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		all = append(all, parse(t, filepath.ToSlash(where), string(text)))
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(all), 50, "the tree is found")
	return all
}

// skipped reports whether a folder is not part of the module.
func skipped(p, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(p, "go.mod"))
	return err == nil
}
