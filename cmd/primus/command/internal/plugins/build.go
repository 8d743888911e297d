package plugins

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/plugin/scaffold"
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
opregistry.Source. Without a version the newest one is used; a directory replaces the
module. The go command builds the program, with its settings, and downloads only what
its cache lacks.

The program of the same version as this one is built; --primus names another version, or
a directory with its source.`,
		Example: `  primus plugins build --with example.com/acme/primus-ops@v1.2.0
  primus plugins build --with example.com/acme/primus-ops=. --output ./primus-acme`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := program(cmd, with, primus, output)
			if err != nil {
				return err
			}
			if err := durable.CheckFileWritable(p.Output); err != nil {
				return fmt.Errorf("--output: %w", err)
			}
			built, err := p.Build(cmd.Context())
			if err != nil {
				return err
			}
			return printBuilt(prog.Out, p.Output, built)
		},
	}
	cmd.Flags().StringArrayVar(&with, "with", nil, "compile in a `MODULE[@VERSION][=DIR]`; may be given many times")
	cmd.Flags().StringVar(&primus, "primus", "", "`VERSION`, DIR or VERSION=DIR of primus itself")
	cmd.Flags().StringVar(&output, "output", "primus", "`FILE` to write")
	return cmd
}

// program reads the flags.
func program(cmd *cobra.Command, with []string, primus, output string) (*scaffold.Program, error) {
	p := &scaffold.Program{Output: output}
	if len(with) == 0 {
		return nil, cli.Usagef(cmd, "no module given, want --with MODULE[@VERSION][=DIR]")
	}
	for _, s := range with {
		m, err := scaffold.ParseModule(s)
		if err != nil {
			return nil, cli.Usagef(cmd, "--with: %w", err)
		}
		p.Modules = append(p.Modules, m)
	}
	if err := p.Check(); err != nil {
		return nil, cli.Usagef(cmd, "--with: %w", err)
	}
	if info, err := os.Stat(output); err == nil && info.IsDir() {
		return nil, cli.Usagef(cmd, "--output: %q is a directory, want the file to write", output)
	}
	var err error
	p.Primus, err = primusSource(cmd, primus)
	return p, err
}

// primusSource returns the source of this module that --primus names.
func primusSource(cmd *cobra.Command, asked string) (scaffold.Module, error) {
	m, err := scaffold.Primus(asked)
	switch {
	case errors.Is(err, scaffold.ErrUnknownSource):
		return m, cli.Usagef(cmd, "%w; name one by --primus VERSION, or its source by --primus DIR", err)
	case err != nil:
		return m, cli.Usagef(cmd, "--primus: %w", err)
	}
	return m, nil
}

func printBuilt(out io.Writer, file string, modules []buildinfo.ModuleVersion) error {
	t := plaintext.NewTable(table.Row{"module", "version", "directory"})
	for _, m := range modules {
		t.AppendRow(table.Row{m.Module, plaintext.Dash(m.Version), plaintext.Dash(m.Dir)})
	}
	_, err := fmt.Fprintf(out, "%s\n\nbuilt %s\n", plaintext.Render(out, t), file)
	return err
}
