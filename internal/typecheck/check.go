package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// problem is an error of a source file.
type problem struct {
	text    string // begins with file:line:column
	systems []string
}

// listed is what go list says about a package.
type listed struct {
	ImportPath string
	ForTest    string // the package whose test this copy of a package is compiled for
	Name       string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	Module     *struct {
		Main      bool
		GoVersion string
	}
}

// ours says whether the functions of a package are checked: those of the module, and not once more
// in copies that differ in their imports only.
func (l listed) ours() bool {
	path, _, _ := strings.Cut(l.ImportPath, " ")
	return l.Module != nil && l.Module.Main && (l.ForTest == "" || strings.TrimSuffix(path, "_test") == l.ForTest)
}

// check returns the errors of the module in a folder, sorted.
func check(dir string, systems []string) ([]problem, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	files := &sources{fset: token.NewFileSet(), parsed: map[string]func() (*ast.File, error){}}
	texts, failures := make([][]string, len(systems)), make([]error, len(systems))
	var wg sync.WaitGroup
	for i, system := range systems {
		wg.Go(func() { texts[i], failures[i] = files.check(dir, system) })
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	found := map[string]problem{}
	for i, system := range systems {
		for _, text := range texts[i] {
			p := found[text]
			found[text] = problem{text, append(p.systems, system)}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b problem) int { return cmp.Compare(a.text, b.text) }), nil
}

// sources holds parsed files, which systems share.
type sources struct {
	fset   *token.FileSet
	mu     sync.Mutex
	parsed map[string]func() (*ast.File, error)
}

// file parses a file the first time that it is asked for.
func (s *sources) file(name string) (*ast.File, error) {
	s.mu.Lock()
	parse, ok := s.parsed[name]
	if !ok {
		parse = sync.OnceValues(func() (*ast.File, error) {
			return parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution|parser.AllErrors)
		})
		s.parsed[name] = parse
	}
	s.mu.Unlock()
	return parse()
}

// check returns the errors that the module in a folder has on a system, each once.
func (s *sources) check(dir, system string) ([]string, error) {
	goos, arch, _ := strings.Cut(system, "/")
	sizes := types.SizesFor("gc", arch)
	if goos == "" || sizes == nil {
		return nil, fmt.Errorf("given the system %q, want GOOS/GOARCH, as in darwin/arm64", system)
	}
	packages, err := list(dir, goos, arch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", system, err)
	}
	found := map[string]bool{}
	report := func(err error) {
		text := err.Error()
		if rel, ok := strings.CutPrefix(text, dir+string(filepath.Separator)); ok {
			text = rel
		}
		found[text] = true
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, l := range packages {
		if l.ImportPath == "unsafe" || strings.HasSuffix(l.ImportPath, ".test") {
			continue
		}
		var parsed []*ast.File
		for _, name := range l.GoFiles {
			f, err := s.file(filepath.Join(l.Dir, name))
			if err != nil {
				report(err)
			}
			if f != nil {
				parsed = append(parsed, f)
			}
		}
		config := types.Config{
			Sizes: sizes, IgnoreFuncBodies: !l.ours(), Error: report,
			Importer: importer(func(path string) (*types.Package, error) {
				if mapped, ok := l.ImportMap[path]; ok {
					path = mapped
				}
				if p := checked[path]; p != nil {
					return p, nil
				}
				return nil, fmt.Errorf("package %s is not listed for %s", path, system)
			}),
		}
		if l.Module != nil && l.Module.GoVersion != "" {
			config.GoVersion = "go" + l.Module.GoVersion
		}
		path, _, _ := strings.Cut(l.ImportPath, " ")
		checked[l.ImportPath], _ = config.Check(path, s.fset, parsed, nil)
	}
	return slices.Collect(maps.Keys(found)), nil
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// list returns the packages of a module, their tests and all that they import, each after what it
// imports.
func list(dir, goos, arch string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,ForTest,Name,Dir,GoFiles,ImportMap,Module", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, l)
	}
}
