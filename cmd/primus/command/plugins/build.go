package plugins

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

func newPluginsBuildCommand(prog cli.Program) *cobra.Command {
	var with []string
	var primus, output string
	cmd := &cobra.Command{
		Use:   "build --with MODULE[@VERSION][=DIR]…",
		Short: "Build a primus with the ops of Go modules compiled in",
		Long: `Build a primus that has the ops of these Go modules besides its own. The package at
the root of each module exports one function without arguments that returns an
opregistry.Source. Without a version the newest one is taken; a directory stands in for
the module. The go command does the work, so its settings hold, and nothing is
downloaded that its cache has.

The program of the same version as this one is built; --primus names another version, or
a directory with its source.`,
		Example: `  primus plugins build --with example.com/acme/primus-ops@v1.2.0
  primus plugins build --with example.com/acme/primus-ops=. --output ./primus-acme`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := newBuilder(cmd, with, primus, output)
			if err != nil {
				return err
			}
			built, err := b.run(cmd.Context())
			if err != nil {
				return err
			}
			return printBuilt(prog.Out, b.output, built)
		},
	}
	cmd.Flags().StringArrayVar(&with, "with", nil, "compile in a `MODULE[@VERSION][=DIR]`; may be given many times")
	cmd.Flags().StringVar(&primus, "primus", "", "`VERSION`, DIR or VERSION=DIR of primus itself")
	cmd.Flags().StringVar(&output, "output", "primus", "`FILE` to write")
	return cmd
}

// builder makes one program.
type builder struct {
	primus  moduleRef
	modules []moduleRef
	output  string
}

// moduleRef says which module goes into a program.
type moduleRef struct{ path, version, dir string }

var modulePath = regexp.MustCompile(`^[A-Za-z0-9_.~-]+(/[A-Za-z0-9_.~-]+)*$`)

// parseModuleRef reads MODULE[@VERSION][=DIR].
func parseModuleRef(s string) (moduleRef, error) {
	name, dir, local := strings.Cut(s, "=")
	path, version, versioned := strings.Cut(name, "@")
	if !modulePath.MatchString(path) || versioned && version == "" || local && dir == "" {
		return moduleRef{}, fmt.Errorf("got %q, want MODULE, MODULE@VERSION, MODULE=DIR or MODULE@VERSION=DIR", s)
	}
	return moduleRef{path, version, dir}, nil
}

func newBuilder(cmd *cobra.Command, with []string, primus, output string) (*builder, error) {
	b := &builder{output: output}
	if len(with) == 0 {
		return nil, cli.Usagef(cmd, "no module given, want --with MODULE[@VERSION][=DIR]")
	}
	for _, s := range with {
		m, err := parseModuleRef(s)
		if err != nil {
			return nil, cli.Usagef(cmd, "--with: %w", err)
		}
		if slices.ContainsFunc(b.modules, func(o moduleRef) bool { return o.path == m.path }) || m.path == graph.PrimusModule {
			return nil, cli.Usagef(cmd, "--with: module %q is in the program already", m.path)
		}
		b.modules = append(b.modules, m)
	}
	if info, err := os.Stat(output); err == nil && info.IsDir() {
		return nil, cli.Usagef(cmd, "--output: %q is a directory, want the file to write", output)
	}
	var err error
	b.primus, err = primusSource(cmd, primus)
	return b, err
}

// primusSource returns which source of this program is built: the one asked for, else that of this
// program, else that of the working directory.
func primusSource(cmd *cobra.Command, asked string) (moduleRef, error) {
	if asked != "" {
		if isDirectory(asked) {
			return moduleRef{path: graph.PrimusModule, dir: asked}, nil
		}
		m, err := parseModuleRef(graph.PrimusModule + "@" + asked)
		if err != nil {
			return m, cli.Usagef(cmd, "--primus: got %q, want VERSION, DIR or VERSION=DIR", asked)
		}
		return m, nil
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v, _ := graph.ModuleOf(info, graph.PrimusModule)
		switch {
		case v.Dir != "":
			return moduleRef{path: graph.PrimusModule, dir: v.Dir}, nil
		case strings.HasPrefix(v.Version, "v") && !strings.HasSuffix(v.Version, "+dirty"):
			return moduleRef{path: graph.PrimusModule, version: v.Version}, nil
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return moduleRef{}, err
	}
	for ; ; dir = filepath.Dir(dir) {
		if mod, err := readModule(dir); err == nil && mod.Module.Mod.Path == graph.PrimusModule {
			return moduleRef{path: graph.PrimusModule, dir: dir}, nil
		}
		if dir == filepath.Dir(dir) {
			return moduleRef{}, cli.Usagef(cmd, "this program does not know which version of %s it was built from; name one by --primus VERSION, or its source by --primus DIR", graph.PrimusModule)
		}
	}
}

// isDirectory reports whether what was asked for means a directory and no version.
func isDirectory(asked string) bool {
	if strings.HasPrefix(asked, ".") || filepath.IsAbs(asked) {
		return true
	}
	info, err := os.Stat(asked)
	return err == nil && info.IsDir()
}

// run builds the program beside its place and moves it there when it has started once.
func (b *builder) run(ctx context.Context) ([]graph.ModuleVersion, error) {
	work, err := os.MkdirTemp("", "primus-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	parts := []part{}
	for _, m := range append([]moduleRef{b.primus}, b.modules...) {
		p, err := fetch(ctx, work, m)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	for i := range parts[1:] {
		if err := parts[1+i].findSource(ctx); err != nil {
			return nil, err
		}
	}
	if err := generate(work, parts); err != nil {
		return nil, err
	}
	output, err := filepath.Abs(b.output)
	if err != nil {
		return nil, err
	}
	unproven := output + ".tmp-build"
	defer os.Remove(unproven)
	if err := compile(ctx, work, unproven, parts); err != nil {
		return nil, err
	}
	if err := tryProgram(ctx, unproven); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(unproven)
	if err != nil {
		return nil, err
	}
	var built []graph.ModuleVersion
	for _, p := range parts {
		if v, ok := graph.ModuleOf(info, p.path); ok {
			built = append(built, v)
		}
	}
	return built, os.Rename(unproven, output)
}

func printBuilt(out io.Writer, file string, modules []graph.ModuleVersion) error {
	t := plaintext.NewTable(table.Row{"module", "version", "directory"})
	for _, m := range modules {
		t.AppendRow(table.Row{m.Module, plaintext.Dash(m.Version), plaintext.Dash(m.Dir)})
	}
	_, err := fmt.Fprintf(out, "%s\n\nbuilt %s\n", plaintext.Render(t), file)
	return err
}
