package plugins

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/vendors/abi"
	"github.com/spf13/cobra"
)

// templates holds a project for each language. NAME in a file's name stands for the vendor.
//
//go:embed all:templates
var templates embed.FS

// language says how a plugin is written in one.
type language struct {
	header bool     // it needs the header of the interface
	next   []string // commands that build and check the project NAME
}

func languages() map[string]language {
	return map[string]language{
		"c":    {header: true, next: []string{"make", "primus plugins check ./libNAME.so"}},
		"cpp":  {header: true, next: []string{"make", "primus plugins check ./libNAME.so"}},
		"go":   {next: []string{"go mod tidy", "go test ./...", "primus plugins build --with MODULE=. --output ./primus-NAME"}},
		"rust": {header: true, next: []string{"cargo build --release", "primus plugins check target/release/libNAME_ops.so"}},
	}
}

// project is what templates are filled with.
type project struct {
	Name          string // of the vendor
	Module        string // of the project, in Go
	PrimusModule  string
	PrimusVersion string
	PrimusDir     string // that stands in for PrimusModule
	sums          []byte // its go.sum, nil when it is not known
}

func newPluginsNewCommand(prog cli.Program) *cobra.Command {
	var lang languageName
	var dir, module, primus string
	cmd := &cobra.Command{
		Use:   "new --lang LANGUAGE NAME",
		Short: "Begin a project with ops of a vendor",
		Long: `Write a project with an op of the vendor NAME, which builds and passes the check as it
is: a shared library in C, C++ or Rust, or a Go module. Nothing that exists is changed.`,
		Example: `  primus plugins new --lang c acme
  primus plugins new --lang go acme --module example.com/acme/primus-ops`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef(cmd, "got %d arguments, want the name of one vendor", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p := project{Name: args[0], Module: module, PrimusModule: graph.PrimusModule}
			if err := p.check(cmd, string(lang)); err != nil {
				return err
			}
			if lang == "go" {
				if err := p.require(cmd, primus); err != nil {
					return err
				}
			}
			if dir == "" {
				dir = p.Name
			}
			if err := p.write(string(lang), dir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(prog.Out, "wrote %s; next:\n\n  cd %s\n", dir, dir)
			for _, line := range languages()[string(lang)].next {
				fmt.Fprintf(prog.Out, "  %s\n", strings.NewReplacer("NAME", p.Name, "MODULE", p.Module).Replace(line))
			}
			return err
		},
	}
	cmd.Flags().Var(&lang, "lang", "`LANGUAGE`: "+strings.Join(languageNames(), ", "))
	cmd.Flags().StringVar(&dir, "dir", "", "write to this new `DIR` instead of ./NAME")
	cmd.Flags().StringVar(&module, "module", "", "`PATH` of the Go module instead of example.com/NAME")
	cmd.Flags().StringVar(&primus, "primus", "", "`VERSION`, DIR or VERSION=DIR of primus that a Go module needs")
	return cmd
}

// Layout returns the layout of the op that the templates have, for languages that cannot read it
// from the header.
func (project) Layout() string { return fmt.Sprintf("0x%016x", norm.ResidualAdd.Layout()) }

// languageName is the value of --lang.
type languageName string

// String implements pflag.Value.
func (l *languageName) String() string { return string(*l) }

// Type implements pflag.Value.
func (l *languageName) Type() string { return "string" }

// Set implements pflag.Value.
func (l *languageName) Set(s string) error {
	*l = languageName(s)
	return nil
}

// Wants says which values the flag takes.
func (l *languageName) Wants() string { return "one of " + strings.Join(languageNames(), ", ") }

func languageNames() []string { return slices.Sorted(maps.Keys(languages())) }

// projectName matches names that can be those of a vendor, a library and a package.
var projectName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func (p *project) check(cmd *cobra.Command, lang string) error {
	switch _, ok := languages()[lang]; {
	case lang == "":
		return cli.Usagef(cmd, "no language given, want --lang with one of %s", strings.Join(languageNames(), ", "))
	case !ok:
		return cli.Usagef(cmd, "--lang: got %q, want one of %s", lang, strings.Join(languageNames(), ", "))
	case !projectName.MatchString(p.Name) || token.IsKeyword(p.Name) || p.Name == "main":
		return cli.Usagef(cmd, "got the name %q, want a vendor such as acme: a letter, then letters, digits and _ in lower case, and no keyword", p.Name)
	case p.Module != "" && lang != "go":
		return cli.Usagef(cmd, "--module: only a project in go is a module")
	case p.Module != "" && !modulePath.MatchString(p.Module):
		return cli.Usagef(cmd, "--module: got %q, want a path such as example.com/%s", p.Module, p.Name)
	}
	if p.Module == "" {
		p.Module = "example.com/" + p.Name
	}
	return nil
}

// require sets which version of primus a module needs.
func (p *project) require(cmd *cobra.Command, asked string) error {
	source, err := primusSource(cmd, asked)
	if err != nil {
		return err
	}
	p.PrimusVersion = source.version
	if source.dir == "" {
		return nil
	}
	if p.PrimusVersion == "" {
		p.PrimusVersion = "v0.0.0"
	}
	if p.PrimusDir, err = filepath.Abs(source.dir); err != nil {
		return err
	}
	p.sums, err = os.ReadFile(filepath.Join(p.PrimusDir, "go.sum"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write makes the project in a directory that does not exist, all of it or nothing.
func (p *project) write(lang, dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s exists already, want the name of a new directory; see --dir", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files, err := p.files(lang)
	if err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	work, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		file := filepath.Join(work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return os.Rename(work, dir)
}

// files returns the files of the project by name.
func (p *project) files(lang string) (map[string][]byte, error) {
	files := map[string][]byte{}
	if languages()[lang].header {
		files["include/primus_op_plugin.h"] = []byte(abi.Header())
		files["include/primus_op_args.h"] = []byte(abi.ArgsHeader())
	}
	if p.sums != nil {
		files["go.sum"] = p.sums // go mod tidy keeps the lines that the module needs
	}
	root := path.Join("templates", lang)
	err := fs.WalkDir(templates, root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := templates.ReadFile(file)
		if err != nil {
			return err
		}
		t, err := template.New(file).Parse(string(text))
		if err != nil {
			return err
		}
		var filled bytes.Buffer
		if err := t.Execute(&filled, p); err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl")
		files[strings.Replace(name, "NAME", p.Name, 1)] = filled.Bytes()
		return nil
	})
	return files, err
}
