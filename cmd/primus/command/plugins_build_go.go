package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// part is a module whose source lies in a directory.
type part struct {
	moduleRef
	replaced bool // by the directory that was given
	sums     string
	source   string // the function that returns the ops
}

// noVersion ends the version of a module that a directory stands in for.
const noVersion = ".0.0-00010101000000-000000000000"

// majorSuffix matches the major version at the end of a module's path.
var majorSuffix = regexp.MustCompile(`[/.](v[0-9]+)$`)

// fetch finds the source of a module, in the directory given or by the go command.
func fetch(ctx context.Context, work string, m moduleRef) (part, error) {
	p := part{moduleRef: m}
	if m.dir == "" {
		if err := p.download(ctx, work); err != nil {
			return p, err
		}
	} else {
		p.replaced = true
		var err error
		if p.dir, err = filepath.Abs(m.dir); err != nil {
			return p, err
		}
		if m.version == "" {
			major := "v0"
			if found := majorSuffix.FindStringSubmatch(m.path); found != nil {
				major = found[1]
			}
			p.version = major + noVersion
		}
	}
	declared, err := declaredModule(p.dir)
	if err != nil {
		return p, fmt.Errorf("module %s: %w", m.path, err)
	}
	if declared != m.path {
		return p, fmt.Errorf("module %s: %s declares module %q", m.path, filepath.Join(p.dir, "go.mod"), declared)
	}
	sums, err := os.ReadFile(filepath.Join(p.dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return p, fmt.Errorf("module %s: %w", m.path, err)
	}
	p.sums += string(sums)
	return p, nil
}

// download asks the go command for a module, which has it in its cache or gets it.
func (p *part) download(ctx context.Context, work string) error {
	version := p.version
	if version == "" {
		version = "latest"
	}
	out, text, err := goCommand(ctx, work, "mod", "download", "-json", p.path+"@"+version)
	if errors.Is(err, exec.ErrNotFound) || ctx.Err() != nil {
		return err
	}
	var found struct{ Version, Dir, Sum, GoModSum, Error string }
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil {
		return fmt.Errorf("module %s@%s: %s", p.path, version, strings.TrimSpace(text))
	}
	if found.Error != "" {
		return fmt.Errorf("module %s@%s: %s", p.path, version, found.Error)
	}
	p.version, p.dir = found.Version, found.Dir
	p.sums = fmt.Sprintf("%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", p.path, found.Version, found.Sum, found.GoModSum)
	return nil
}

// moduleLine matches the directive of a go.mod that names the module.
var moduleLine = regexp.MustCompile(`(?m)^\s*module\s+"?([^\s"]+)`)

// declaredModule returns what the go.mod of a directory calls its module.
func declaredModule(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("%w; want the root of a Go module", err)
	}
	found := moduleLine.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s names no module", filepath.Join(dir, "go.mod"))
	}
	return string(found[1]), nil
}

// findSource finds the function at the root of the module that returns its ops.
func (p *part) findSource() error {
	pkg, err := build.ImportDir(p.dir, 0)
	if err != nil {
		return fmt.Errorf("module %s: %w; want a package with its ops at the root", p.path, err)
	}
	var found []string
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("module %s does not compile: %w", p.path, err)
		}
		found = append(found, constructors(file)...)
	}
	const want = "want one function that returns its ops, such as func Source() opregistry.Source"
	switch {
	case pkg.Name == "main":
		return fmt.Errorf("module %s is a program, %s in a package that can be imported", p.path, want)
	case len(found) == 0:
		return fmt.Errorf("module %s: package %s exports no source of ops, %s", p.path, pkg.Name, want)
	case len(found) > 1:
		return fmt.Errorf("module %s: package %s exports %d sources of ops (%s), %s", p.path, pkg.Name, len(found), strings.Join(found, ", "), want)
	}
	p.source = found[0]
	return nil
}

// constructors returns the exported functions of a file that take nothing and return an opregistry.Source.
func constructors(file *ast.File) []string {
	registry := ""
	for _, spec := range file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil && path == primusModule+"/opregistry" {
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

var mainTemplate = template.Must(template.New("main").Parse(`// Code generated by primus plugins build. DO NOT EDIT.

package main

import (
	"os"

	"` + primusModule + `/cmd/primus/command"
{{range $i, $m := .}}
	module{{$i}} "{{$m.Path}}"{{end}}
)

func main() {
	os.Exit(command.Main(os.Args[1:], command.StandardStreams(),{{range $i, $m := .}}
		command.Extra{Module: "{{$m.Path}}", Source: module{{$i}}.{{$m.Source}}},{{end}}
	))
}
`))

// generate writes a module whose program has the parts: primus first, then those with ops.
func generate(work string, parts []part) error {
	var program, mod, sums bytes.Buffer
	var imports []struct{ Path, Source string }
	fmt.Fprintf(&mod, "module primus_with_plugins\n\ngo 1.26.0\n")
	for _, p := range parts {
		fmt.Fprintf(&mod, "\nrequire %s %s\n", p.path, p.version)
		if p.replaced {
			fmt.Fprintf(&mod, "replace %s => %s\n", p.path, strconv.Quote(p.dir))
		}
		sums.WriteString(p.sums)
		if p.source != "" {
			imports = append(imports, struct{ Path, Source string }{p.path, p.source})
		}
	}
	if err := mainTemplate.Execute(&program, imports); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"main.go": program.Bytes(), "go.mod": mod.Bytes(), "go.sum": sums.Bytes()} {
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
		if found := ofModule(text, p.path); found != "" {
			return fmt.Errorf("module %s does not compile:\n%s", p.path, found)
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
