package command

import (
	"errors"

	"github.com/primus-fl/primus/runtime/config/document"
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
	cmd.AddCommand(newConfigShowCommand(streams), newConfigDiffCommand(streams), newConfigValidateCommand(streams), newConfigCLICommand(streams))
	return cmd
}

// configFormat is the value of -o of commands that print configurations.
type configFormat struct{ document.Format }

// addFlag gives a command the flag -o.
func (f *configFormat) addFlag(cmd *cobra.Command) {
	f.Format = document.FormatYAML
	cmd.Flags().VarP(f, "output", "o", "yaml, json or toml")
}

// configFormats returns the values of -o for completion.
func configFormats() []cobra.Completion {
	var names []cobra.Completion
	for _, format := range document.Formats() {
		names = append(names, string(format))
	}
	return names
}

// String implements pflag.Value.
func (f *configFormat) String() string { return string(f.Format) }

// Type implements pflag.Value.
func (f *configFormat) Type() string { return "configuration format" }

// Set implements pflag.Value.
func (f *configFormat) Set(s string) error {
	format, err := document.ParseFormat(s)
	if err != nil {
		return errors.New("unknown format")
	}
	f.Format = format
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
func completeExperiments(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return experimentExtensions(), cobra.ShellCompDirectiveFilterFileExt
}
