package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/spf13/cobra"
)

func newPolicyCheckCommand(streams Streams) *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "check FILE…",
		Short: "Check policy files",
		Long: `Check policy files without using them. Every fault is reported with file, line and
column. Names of ops, vendors and implementations that nothing in this program
registers are warnings, because one policy may serve many machines; with --strict
they are errors.`,
		Example: `  primus policy check policy.yaml
  primus policy check --strict policies/*.yaml`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return usagef(cmd, "no policy file given: want FILE…")
			}
			return checkPolicies(cmd.Context(), streams, files, strict)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "names that no loaded source registers are errors")
	return cmd
}

// checkPolicies returns the faults of all files, and says of the others that they are valid.
func checkPolicies(ctx context.Context, streams Streams, files []string, strict bool) error {
	log := slog.New(newLineHandler(streams.Err, slog.LevelWarn, timeOfDay))
	set := appConfig{log: log, extras: streams.extras}
	set.policy.lookup = func(string) (string, bool) { return "", false } // a file is judged by itself
	var p opsParams
	return runApp(ctx, func() error {
		var faults []error
		for _, file := range files {
			if err := checkPolicy(p.Manager, log, file, strict); err != nil {
				faults = append(faults, err)
				continue
			}
			if _, err := fmt.Fprintf(streams.Out, "%s: valid\n", file); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
		}
		return errors.Join(faults...)
	}, opsGraph(set, func(built opsParams) { p = built }))
}

func checkPolicy(m *opmanager.Manager, log *slog.Logger, file string, strict bool) error {
	overlay, err := policyfile.Read(file)
	if err != nil {
		return err
	}
	view := m.With(overlay.Apply(opmanager.DefaultPolicy()))
	defer view.Close()
	var faults []error
	for _, warning := range view.Warnings() {
		if strict {
			faults = append(faults, errors.New(warning))
		} else {
			log.Warn(warning)
		}
	}
	return errors.Join(faults...)
}
