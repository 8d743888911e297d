package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/vendors/plugin/pluginset"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

func newConfigValidateCommand(prog cli.Program) *cobra.Command {
	opts := experiments.PresetOptions{Program: prog}
	var plugins dispatch.PluginFlags
	cmd := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check experiments and the presets they name",
		Long: `Check experiments and the presets they name without training. Every fault is reported
with file, line and key. Values that have no effect are warnings; with --strict-config
they are errors. So are faults of the dispatch policy in an experiment; the plugins that
it names are loaded, each first in a child process, and what this program does not know
is a warning. The checks of the backend are not run. The exit code is 1 when any
experiment is invalid.`,
		Example: `  primus config validate exp.yaml
  primus config validate Primus/examples/megatron/configs/*/*.yaml
  primus config validate --strict-config experiments/*.yaml`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return cli.Usagef(cmd, "no experiment given: want FILE…")
			}
			return validateExperiments(cmd.Context(), prog, opts, plugins, files)
		},
		ValidArgsFunction: completeExperiments(prog),
	}
	opts.AddFlags(cmd.Flags())
	plugins.AddFlags(cmd.Flags())
	completeDirs(cmd)
	return cmd
}

// validateExperiments prints a verdict for each file and returns all faults.
func validateExperiments(ctx context.Context, prog cli.Program, opts experiments.PresetOptions, plugins dispatch.PluginFlags, files []string) error {
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	var (
		lines           strings.Builder
		faults          []error
		invalid, losing int
	)
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		var report config.Report
		experiment, err := opts.Read(ctx, file, nil)
		if err == nil {
			report = experiment.Report
			experiments.LogReport(log, report)
			err = validatePolicies(ctx, graph.Config{Log: log, Extras: prog.Extras}, plugins, experiment)
		}
		lost := len(report.Collisions)
		switch {
		case err != nil:
			invalid++
			faults = append(faults, faultsOf(file, err)...)
			fmt.Fprintf(&lines, "%s: invalid\n", file)
		case lost > 0:
			losing++
			fmt.Fprintf(&lines, "%s: valid, %s\n", file, plaintext.Quantity(lost, "value without effect", "values without effect"))
		default:
			fmt.Fprintf(&lines, "%s: valid\n", file)
		}
	}
	fmt.Fprintf(&lines, "%s: %d valid, %d of them with values without effect, %d invalid\n",
		plaintext.Quantity(len(files), "experiment", "experiments"), len(files)-invalid, losing, invalid)
	if _, err := fmt.Fprint(prog.Out, lines.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return errors.Join(faults...)
}

// validatePolicies returns the faults of the dispatch policies in an experiment, and warns of what
// they name that is unknown with the plugins that they name.
func validatePolicies(ctx context.Context, set graph.Config, plugins dispatch.PluginFlags, experiment *config.Experiment) error {
	var faults []error
	for _, m := range experiment.Modules {
		if !hasPolicy(m) {
			continue
		}
		set := set
		set.Policy = dispatch.OfModule(m)
		set.Policy.Flags.Plugins, set.ListPlugins = plugins, true
		var manager *opmanager.Manager
		var loaded *pluginset.Set
		faults = append(faults, graph.Run(ctx, func() error {
			for _, warning := range slices.Concat(graph.PluginProblems(loaded), manager.Warnings()) {
				set.Log.Warn(warning)
			}
			return nil
		}, graph.OpsGraph(set, func(built graph.OpsParams) { manager = built.Manager }), fx.Populate(&loaded)))
	}
	return errors.Join(faults...)
}

// hasPolicy reports whether a module has parameters of the dispatch policy.
func hasPolicy(m *config.Module) bool {
	for name, value := range m.Params.All() {
		if backend.IsDispatchParam(name) && !value.IsNull() {
			return true
		}
	}
	return false
}

// faultsOf returns the faults of an experiment as separate errors. Those of presets also name the
// experiment.
func faultsOf(file string, err error) []error {
	type joined interface {
		error
		Unwrap() []error
	}
	faults := []error{err}
	if several, ok := errors.AsType[joined](err); ok {
		faults = slices.Clone(several.Unwrap())
	}
	for i, fault := range faults {
		if !strings.Contains(fault.Error(), file) {
			faults[i] = fmt.Errorf("%s: %w", file, fault)
		}
	}
	return faults
}
