package command

import (
	"errors"

	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newConfigCommand(streams Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at experiments, their presets and overrides",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(newConfigShowCommand(streams), newConfigDiffCommand(streams), newConfigValidateCommand(streams))
	return cmd
}

// configFormat is the value of -o of commands that print configurations.
type configFormat struct{ config.Format }

// addFlag gives a command the flag -o.
func (f *configFormat) addFlag(cmd *cobra.Command) {
	f.Format = config.FormatYAML
	cmd.Flags().VarP(f, "output", "o", "yaml, json or toml")
	formats := make([]cobra.Completion, len(config.Formats()))
	for i, format := range config.Formats() {
		formats[i] = string(format)
	}
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
}

// String implements pflag.Value.
func (f *configFormat) String() string { return string(f.Format) }

// Type implements pflag.Value.
func (f *configFormat) Type() string { return "configuration format" }

// Set implements pflag.Value.
func (f *configFormat) Set(s string) error {
	format, err := config.ParseFormat(s)
	if err != nil {
		return errors.New("unknown format")
	}
	f.Format = format
	return nil
}

var _ pflag.Value = (*configFormat)(nil)

// completeExperiments completes arguments that are experiment files.
func completeExperiments(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return experimentExtensions(), cobra.ShellCompDirectiveFilterFileExt
}
