package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// listed is what go list says about a package.
type listed struct {
	ImportPath string
	Export     string // the file of the build cache with its types
	Dir        string
	GoFiles    []string
}

// moduleRoot returns the folder and the path of the module that the program is run in.
func moduleRoot() (dir, path string, err error) {
	out, err := goCommand(".", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}")
	if err != nil {
		return "", "", err
	}
	dir, path, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return dir, path, nil
}

// exported returns the sorted lines of some packages of the module, as they are on linux/amd64.
func exported(root, module string, packages []string) ([]string, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	out, err := goCommand(root, args...)
	if err != nil {
		return nil, err
	}
	found := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		found[l.ImportPath] = l
	}
	types := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(found[path].Export) })
	var lines []string
	for _, p := range packages {
		pkg, err := types.Import(path.Join(module, p))
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", p, err)
		}
		marked, err := deprecated(found[path.Join(module, p)])
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", p, err)
		}
		lines = append(lines, describe(pkg, module, marked)...)
	}
	slices.Sort(lines)
	return lines, nil
}

// deprecated returns the names of a package whose comment has a paragraph that begins with
// "Deprecated:", those of methods after the name of their type and a dot.
func deprecated(l listed) (map[string]bool, error) {
	marked := map[string]bool{}
	mark := func(name string, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			text := doc.Text()
			marked[name] = marked[name] || strings.HasPrefix(text, "Deprecated:") || strings.Contains(text, "\n\nDeprecated:")
		}
	}
	for _, name := range l.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(l.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				mark(receiver(d)+d.Name.Name, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						mark(s.Name.Name, d.Doc, s.Doc)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							mark(name.Name, d.Doc, s.Doc)
						}
					}
				}
			}
		}
	}
	return marked, nil
}

// receiver returns the name of the type of a method and a dot, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch e := t.(type) {
		case *ast.StarExpr:
			t = e.X
		case *ast.IndexExpr:
			t = e.X
		case *ast.IndexListExpr:
			t = e.X
		case *ast.Ident:
			return e.Name + "."
		default:
			return ""
		}
	}
}

func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
