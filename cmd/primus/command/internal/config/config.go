// Package config is the commands that show, compare and validate experiments.
package config

import (
	"errors"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// New returns the command `primus config`.
func New(prog cli.Program, root func(cli.Program) *cobra.Command) *cobra.Command {
	return cli.Group("config", "Look at experiments, their presets and overrides",
		newConfigShowCommand(prog), newConfigDiffCommand(prog), newConfigValidateCommand(prog), newConfigParametersCommand(prog), newConfigCLICommand(prog, root),
	)
}

// configFormat is the value of -o of commands that print configurations.
type configFormat struct {
	document.Renderer
	extras []fx.Option // of Main
}

// AddFlag gives a command the flag -o.
func (f *configFormat) addFlag(cmd *cobra.Command, prog cli.Program) {
	f.Renderer, f.extras = formats.YAML{}, prog.Extras
	cmd.Flags().VarP(f, "output", "o", "yaml, json or toml")
	complete := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return configFormats(prog), cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic("BUG: " + err.Error())
	}
}

// configFormats returns the values of -o for completion.
func configFormats(prog cli.Program) []cobra.Completion {
	loaded, err := graph.LoadFormats(prog.Extras)
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	for _, format := range loaded.Renderers() {
		names = append(names, format.Name())
	}
	return names
}

// String implements pflag.Value.
func (f *configFormat) String() string {
	if f.Renderer == nil {
		return ""
	}
	return f.Name()
}

// Type implements pflag.Value.
func (f *configFormat) Type() string { return "configuration format" }

// Wants says which values the flag takes.
func (f *configFormat) Wants() string { return "yaml, json or toml" }

// Set implements pflag.Value.
func (f *configFormat) Set(s string) error {
	loaded, err := graph.LoadFormats(f.extras)
	if err != nil {
		return err
	}
	if f.Renderer, err = loaded.Renderer(s); err != nil {
		return errors.New("unknown format")
	}
	return nil
}

var _ pflag.Value = (*configFormat)(nil)

// completeDirs makes the values of --configs-dir complete to directories.
func completeDirs(cmd *cobra.Command) {
	if err := cmd.MarkFlagDirname("configs-dir"); err != nil {
		panic("BUG: " + err.Error())
	}
}

// completeExperiments completes arguments that are experiment files.
func completeExperiments(prog cli.Program) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return graph.ExperimentExtensions(prog.Extras), cobra.ShellCompDirectiveFilterFileExt
	}
}
