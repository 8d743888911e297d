package command

import (
	"errors"
	"os"
	"slices"

	"github.com/primus-fl/primus/cmd/primus/settings"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// perCall are the flags of a single question or result, which have no variable and no key in primus.yaml.
var perCall = []string{
	"backend", "catalog", "dir", "dtype", "exit-code", "expect", "failures", "groups", "help", "impl", "lang", "layer", "layout", "mask",
	"module", "no-descriptions", "op", "origin", "output", "pass", "phase", "plot", "posttrain", "primus", "repeat", "shape", "steps", "strict", "timeout",
	"version", "warmup", "with",
}

// isSetting reports whether a flag may come from the environment or from primus.yaml.
func isSetting(f *pflag.Flag) bool {
	_, without := f.Annotations[variableOnly]
	return !without && !f.Hidden && !slices.Contains(perCall, f.Name)
}

// applyDefaults sets the flags of a command that were not given from the environment and from primus.yaml.
func applyDefaults(cmd *cobra.Command) error {
	if underHidden(cmd) {
		return nil
	}
	s, err := loadSettings(cmd.Root())
	if err != nil {
		return err
	}
	all, err := s.Resolve(cmd.Flags(), isSetting)
	if err != nil {
		return usageError{err}
	}
	var faults []error
	for _, setting := range all {
		if err := setting.Apply(cmd.Flags(), wants); err != nil {
			faults = append(faults, usagef(cmd, "%w", err))
		}
	}
	return errors.Join(faults...)
}

// underHidden reports whether a command is one that the program or a shell runs, not a user.
func underHidden(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
			return true
		}
	}
	return false
}

// loadSettings reads the files that count here, whose keys are flags of some command below root.
func loadSettings(root *cobra.Command) (*settings.Settings, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	s, err := settings.Load(dir)
	if err != nil {
		return nil, usageError{err}
	}
	var names, others []string
	walkCommands(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if isSetting(f) {
				names = append(names, f.Name)
			} else {
				others = append(others, f.Name)
			}
		})
	})
	if err := s.Check(names, others); err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

// walkCommands calls f for a command and every visible one below it.
func walkCommands(cmd *cobra.Command, f func(*cobra.Command)) {
	if underHidden(cmd) {
		return
	}
	f(cmd)
	for _, sub := range cmd.Commands() {
		walkCommands(sub, f)
	}
}
