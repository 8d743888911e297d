// Command treestats counts what a checkout of this module consists of, and prints a count a line
// after its name and a tab.
//
//	go run ./internal/treestats [-words] [DIR]
//
// With -words, it prints the hand-written words of each page of documentation instead.
// scripts/measure-tree.sh compares the counts of two commits.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	pages := flag.Bool("words", false, "print the hand-written words of each page of documentation")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	var err error
	if *pages {
		_, err = documentation(dir, os.Stdout)
	} else {
		err = run(dir, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "treestats:", err)
		os.Exit(1)
	}
}

func run(dir string, out io.Writer) error {
	all, err := packages(dir)
	if err != nil {
		return err
	}
	public, names := 0, 0
	for _, p := range all {
		if !p.public() {
			continue
		}
		public++
		exported, err := exportedNames(p.Dir, slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles))
		if err != nil {
			return err
		}
		names += exported
	}
	source, tests, err := lines(dir)
	if err != nil {
		return err
	}
	written, err := documentation(dir, io.Discard)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "packages\t%d\npublic packages\t%d\nexported names of public packages\t%d\nsource lines\t%d\ntest lines\t%d\nhand-written words of documentation\t%d\n",
		len(all), public, names, source, tests, written)
	return err
}

// listed is what go list says about a package.
type listed struct {
	ImportPath, Name, Dir             string
	GoFiles, CgoFiles, IgnoredGoFiles []string
}

// public reports whether other modules can import a package.
func (p listed) public() bool {
	internal := slices.Contains(strings.Split(p.ImportPath, "/"), "internal")
	return !internal && p.Name != "main" && len(p.GoFiles)+len(p.CgoFiles) > 0
}

func packages(dir string) ([]listed, error) {
	out, err := command(dir, "go", "list", "-json=ImportPath,Name,Dir,GoFiles,CgoFiles,IgnoredGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, p)
	}
}

// exportedNames counts the exported functions, types, constants and variables of a package, those
// that several systems have once.
func exportedNames(dir string, files []string) (int, error) {
	names := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		for _, id := range declared(file) {
			if id.IsExported() {
				names[id.Name] = true
			}
		}
	}
	return len(names), nil
}

// declared returns the names that a file declares at its top level, without those of methods.
func declared(file *ast.File) []*ast.Ident {
	var all []*ast.Ident
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				all = append(all, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					all = append(all, s.Name)
				case *ast.ValueSpec:
					all = append(all, s.Names...)
				}
			}
		}
	}
	return all
}

// lines counts the lines of the Go files that git has, without those of internal/tools.
func lines(dir string) (source, tests int, err error) {
	out, err := command(dir, "git", "ls-files", "-z", "*.go")
	if err != nil {
		return 0, 0, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.HasPrefix(name, "internal/tools/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		} else if err != nil {
			return 0, 0, err
		}
		if n := bytes.Count(text, []byte("\n")); strings.HasSuffix(name, "_test.go") {
			tests += n
		} else {
			source += n
		}
	}
	return source, tests, nil
}

func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
