package cli

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/primus-fl/primus/internal/settings"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// perCall are the flags of a single command line. They have no variable and no key in primus.yaml.
var perCall = []string{
	"backend", "catalog", "chat", "checkpoint", "dir", "dtype", "exit-code", "expect", "failures", "groups", "help", "impl", "lang", "layer", "layout", "mask",
	"module", "no-descriptions", "op", "origin", "output", "pass", "phase", "plot", "posttrain", "primus", "repeat", "shape", "steps", "strict", "timeout",
	"version", "warmup", "wide", "with",
}

// IsSetting reports whether a flag may come from the environment or from primus.yaml.
func IsSetting(f *pflag.Flag) bool {
	_, without := f.Annotations[VariableOnly]
	return !without && !f.Hidden && !slices.Contains(perCall, f.Name)
}

// ApplyDefaults sets the flags of a command that were not given from the environment and from
// primus.yaml, and the width of its tables.
func ApplyDefaults(cmd *cobra.Command) error {
	applyWide(cmd)
	if underHidden(cmd) {
		return nil
	}
	s, err := LoadSettings(cmd.Context(), cmd.Root())
	if err != nil {
		return err
	}
	all, err := s.Resolve(cmd.Flags(), IsSetting)
	if err != nil {
		return UsageError{err}
	}
	var faults []error
	for _, setting := range all {
		if err := setting.Apply(cmd.Flags(), Wants); err != nil {
			faults = append(faults, Usagef(cmd, "%w", err))
		}
	}
	return errors.Join(faults...)
}

// underHidden reports whether a command is for the program or a shell, not for users.
func underHidden(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
			return true
		}
	}
	return false
}

// LoadSettings reads the files for the working directory. Their keys are flags of commands below
// root.
func LoadSettings(ctx context.Context, root *cobra.Command) (*settings.Settings, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	s, err := settings.Load(ctx, dir)
	if err != nil {
		return nil, UsageError{err}
	}
	var names, others []string
	WalkCommands(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if IsSetting(f) {
				names = append(names, f.Name)
			} else {
				others = append(others, f.Name)
			}
		})
	})
	if err := s.Check(names, others); err != nil {
		return nil, UsageError{err}
	}
	return s, nil
}

// WalkCommands calls f for a command and every visible one below it.
func WalkCommands(cmd *cobra.Command, f func(*cobra.Command)) {
	if underHidden(cmd) {
		return
	}
	f(cmd)
	for _, sub := range cmd.Commands() {
		WalkCommands(sub, f)
	}
}

// WithoutVariable marks flags that no PRIMUS_* variable sets.
func WithoutVariable(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flags.Lookup(name).Annotations = map[string][]string{VariableOnly: nil}
	}
}

// VariableOnly marks flags that no PRIMUS_* variable sets.
const VariableOnly = "primus_no_variable"
