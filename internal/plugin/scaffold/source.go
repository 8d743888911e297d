package scaffold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/buildinfo"
	"golang.org/x/mod/modfile"
)

// part is a module whose source lies in a directory.
type part struct {
	Module
	replaced bool // by the directory that was given
	mod      *modfile.File
	sums     string
	source   string // the function that returns the ops
}

// fetch finds the source of a module, in the directory given or by the go command.
func fetch(ctx context.Context, work string, m Module) (part, error) {
	p, err := part{Module: m}, error(nil)
	if m.Dir == "" {
		if err := p.download(ctx, work); err != nil {
			return p, err
		}
	} else {
		p.replaced = true
		if p.Dir, err = filepath.Abs(m.Dir); err != nil {
			return p, err
		}
		if m.Version == "" {
			p.Version = noVersion(m.Path)
		}
	}
	if p.mod, err = readModule(p.Dir); err != nil {
		return p, fmt.Errorf("module %s: %w", m.Path, err)
	}
	if declared := p.mod.Module.Mod.Path; declared != m.Path {
		return p, fmt.Errorf("module %s: %s declares module %q", m.Path, filepath.Join(p.Dir, "go.mod"), declared)
	}
	sums, err := os.ReadFile(filepath.Join(p.Dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return p, fmt.Errorf("module %s: %w", m.Path, err)
	}
	p.sums += string(sums)
	return p, nil
}

// download asks the go command for a module, which has it in its cache or gets it.
func (p *part) download(ctx context.Context, work string) error {
	version := p.Version
	if version == "" {
		version = "latest"
	}
	out, text, err := goCommand(ctx, work, "mod", "download", "-json", p.Path+"@"+version)
	if errors.Is(err, exec.ErrNotFound) || ctx.Err() != nil {
		return err
	}
	var found struct{ Version, Dir, Sum, GoModSum, Error string }
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil {
		return fmt.Errorf("module %s@%s: %s", p.Path, version, strings.TrimSpace(text))
	}
	if found.Error != "" {
		return fmt.Errorf("module %s@%s: %s", p.Path, version, found.Error)
	}
	p.Version, p.Dir = found.Version, found.Dir
	p.sums = fmt.Sprintf("%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", p.Path, found.Version, found.Sum, found.GoModSum)
	return nil
}

// findSource finds the function at the root of the module that returns its ops.
func (p *part) findSource(ctx context.Context) error {
	out, text, err := goCommand(ctx, p.Dir, "list", "-find", "-json=Name,GoFiles", ".")
	if errors.Is(err, exec.ErrNotFound) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("module %s: %s; want a package with its ops at the root", p.Path, strings.TrimSpace(text))
	}
	var pkg struct {
		Name    string
		GoFiles []string
	}
	if err := json.Unmarshal(out, &pkg); err != nil {
		return fmt.Errorf("module %s: read what go list says: %w", p.Path, err)
	}
	var found []string
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("module %s does not compile: %w", p.Path, err)
		}
		found = append(found, constructors(file)...)
	}
	const want = "want one function that returns its ops, such as func Source() opregistry.Source"
	switch {
	case pkg.Name == "main":
		return fmt.Errorf("module %s is a program, %s in a package that can be imported", p.Path, want)
	case len(found) == 0:
		return fmt.Errorf("module %s: package %s exports no source of ops, %s", p.Path, pkg.Name, want)
	case len(found) > 1:
		return fmt.Errorf("module %s: package %s exports %d sources of ops (%s), %s", p.Path, pkg.Name, len(found), strings.Join(found, ", "), want)
	}
	p.source = found[0]
	return nil
}

// constructors returns the exported functions of a file that take nothing and return an
// opregistry.Source.
func constructors(file *ast.File) []string {
	registry := ""
	for _, spec := range file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil && path == buildinfo.Module+"/opregistry" {
			registry = "opregistry"
			if spec.Name != nil {
				registry = spec.Name.Name
			}
		}
	}
	var found []string
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Type.TypeParams != nil || !f.Name.IsExported() || f.Type.Params.NumFields() != 0 || f.Type.Results.NumFields() != 1 {
			continue
		}
		result, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr)
		if !ok || result.Sel.Name != "Source" {
			continue
		}
		if from, ok := result.X.(*ast.Ident); ok && registry != "" && from.Name == registry {
			found = append(found, f.Name.Name)
		}
	}
	return found
}

// program returns the main.go of a program with sources of ops.
func program(sources []part) []byte {
	var imports, extras strings.Builder
	for i, p := range sources {
		fmt.Fprintf(&imports, "\n\tmodule%d %q", i, p.Path)
		fmt.Fprintf(&extras, "\n\t\tcommand.Extra(%q, module%d.%s),", p.Path, i, p.source)
	}
	return fmt.Appendf(nil, `// Code generated by primus plugins build. DO NOT EDIT.

package main

import (
	"os"

	"%s/cmd/primus/command"
%s
)

func main() {
	os.Exit(command.Main(os.Args[1:], command.StandardStreams(),%s
	))
}
`, buildinfo.Module, imports.String(), extras.String())
}

// generate writes a module whose program has the parts: primus first, then those with ops.
func generate(work string, parts []part) error {
	var sums bytes.Buffer
	var sources []part
	for _, p := range parts {
		sums.WriteString(p.sums)
		if p.source != "" {
			sources = append(sources, p)
		}
	}
	mod, err := requirements(parts)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"main.go": program(sources), "go.mod": mod, "go.sum": sums.Bytes()} {
		if err := os.WriteFile(filepath.Join(work, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compile builds the generated module into a file.
func compile(ctx context.Context, work, output string, parts []part) error {
	_, text, err := goCommand(ctx, work, "build", "-mod=mod", "-o", output, ".")
	if err == nil || ctx.Err() != nil || errors.Is(err, exec.ErrNotFound) {
		return err
	}
	text = strings.TrimSpace(text)
	for _, p := range slices.Backward(parts) {
		if found := ofModule(text, p.Path); found != "" {
			return fmt.Errorf("module %s does not compile:\n%s", p.Path, found)
		}
	}
	return fmt.Errorf("the program does not build:\n%s", text)
}

// ofModule returns what the go command said about packages of a module.
func ofModule(text, module string) string {
	var found []string
	inside := false
	for line := range strings.Lines(text) {
		if pkg, ok := strings.CutPrefix(line, "# "); ok {
			pkg = strings.TrimSpace(pkg)
			inside = pkg == module || strings.HasPrefix(pkg, module+"/")
		}
		if inside {
			found = append(found, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(found, "\n")
}

// goCommand runs the go command in a directory and returns its output, and what it said besides.
func goCommand(ctx context.Context, dir string, args ...string) (out []byte, text string, err error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, "", fmt.Errorf("%w: building needs the go command, see https://go.dev/dl", exec.ErrNotFound)
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+dir)
	if _, set := os.LookupEnv("CGO_ENABLED"); !set {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err = cmd.Output()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, stderr.String(), err
}

// tryProgram lets a program list its ops, which fails when it does not accept its sources.
func tryProgram(ctx context.Context, file string) error {
	cmd := exec.CommandContext(ctx, file, "ops", "list", "-o", "json")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TE_FL_") || strings.HasPrefix(v, "PRIMUS_")
	})
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		said := strings.TrimPrefix(strings.TrimSpace(stderr.String()), "primus: error: ")
		return fmt.Errorf("the program was built, but does not start (%w), so it was not kept: %s", err, said)
	}
	return nil
}
