package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/plugin/scaffold"
	"github.com/spf13/cobra"
)

func newPluginsNewCommand(prog cli.Program) *cobra.Command {
	var lang languageName
	var dir, module, primus string
	cmd := &cobra.Command{
		Use:   "new --lang LANGUAGE NAME",
		Short: "Begin a project with ops of a vendor",
		Long: `Write a project with an op of the vendor NAME, which builds and passes the check without
changes: a shared library in C, C++ or Rust, one in C with kernels for OpenCL devices, or
a Go module. Existing files are never changed.`,
		Example: `  primus plugins new --lang c acme
  primus plugins new --lang opencl acme
  primus plugins new --lang go acme --module example.com/acme/primus-ops`,
		Args: cli.Arguments(1, "arguments", "the name of one vendor"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := scaffold.Project{Language: string(lang), Name: args[0], Module: module}
			if err := checkProject(cmd, &p, primus); err != nil {
				return err
			}
			if dir == "" {
				dir = p.Name
			}
			if err := p.Write(dir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(prog.Out, "wrote %s; next:\n\n  cd %s\n%s\n", dir, dir, plaintext.Indent(strings.Join(p.Next(), "\n")))
			return err
		},
	}
	cmd.Flags().Var(&lang, "lang", "`LANGUAGE`: "+strings.Join(scaffold.Languages(), ", "))
	cmd.Flags().StringVar(&dir, "dir", "", "write to this new `DIR` instead of ./NAME")
	cmd.Flags().StringVar(&module, "module", "", "`PATH` of the Go module instead of example.com/NAME")
	cmd.Flags().StringVar(&primus, "primus", "", "`VERSION`, DIR or VERSION=DIR of primus that a Go module needs")
	return cmd
}

// checkProject returns what is wrong with the flags, and adds the version of primus that a module
// needs.
func checkProject(cmd *cobra.Command, p *scaffold.Project, primus string) error {
	if p.Language == "" {
		return cli.Usagef(cmd, "no language given, want --lang with one of %s", strings.Join(scaffold.Languages(), ", "))
	}
	if err := p.Check(); err != nil {
		return cli.Usagef(cmd, "%w", err)
	}
	if p.Language != "go" {
		return nil
	}
	source, err := primusSource(cmd, primus)
	if err != nil {
		return err
	}
	p.PrimusVersion = source.Version
	if source.Dir == "" {
		return nil
	}
	p.PrimusVersion = cmp.Or(p.PrimusVersion, "v0.0.0")
	p.PrimusDir, err = filepath.Abs(source.Dir)
	return err
}

// languageName is the value of --lang.
type languageName string

// String implements pflag.Value.
func (l *languageName) String() string { return string(*l) }

// Type implements pflag.Value.
func (l *languageName) Type() string { return "string" }

// Set implements pflag.Value.
func (l *languageName) Set(s string) error {
	if !slices.Contains(scaffold.Languages(), s) {
		return errors.New("unknown language")
	}
	*l = languageName(s)
	return nil
}

// Wants says which values the flag takes.
func (l *languageName) Wants() string { return "one of " + strings.Join(scaffold.Languages(), ", ") }
