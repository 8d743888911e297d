package config

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/spf13/cobra"
)

// showOptions are the flags of `primus config show`.
type showOptions struct {
	experiments.Options
	module string
	format configFormat
	origin bool
}

func newConfigShowCommand(prog cli.Program) *cobra.Command {
	var opts showOptions
	opts.Program = prog
	cmd := &cobra.Command{
		Use:   "show --config FILE [key=value…]",
		Short: "Show an experiment with presets and overrides merged",
		Long: `Show an experiment with presets and overrides merged, as training would see it.
Nothing is trained, and nothing is written but the file of --export-config.

With --origin every value is followed by where it was written, and by what it
replaced: # exp.yaml:12:11; over 0.001 (presets/modules/native/pre_trainer.yaml:9:5).
JSON, which has no comments, has these under the key origins.

Values that have no effect and other probable mistakes are listed on standard error.`,
		Example: `  primus config show --config exp.yaml
  primus config show --config exp.yaml --origin lr=1e-4 train_iters=100
  primus config show --config exp.yaml --module pre_trainer -o json
  primus config show --config exp.yaml --export-config resolved.yaml`,
	}
	opts.AddFlags(cmd.Flags())
	opts.format.addFlag(cmd, prog)
	cmd.Flags().StringVar(&opts.module, "module", "", "show and override only the module `NAME`")
	cmd.Flags().BoolVar(&opts.origin, "origin", false, "say where each value came from and what it replaced")
	cli.WithoutVariable(cmd.Flags(), "output", "module", "origin")
	experiments.TakeOverrides(prog, cmd, "", func(cmd *cobra.Command, overrides []string) error {
		if err := opts.Check(cmd, overrides); err != nil {
			return err
		}
		return showExperiment(cmd.Context(), prog, opts, overrides)
	})
	return cmd
}

func showExperiment(ctx context.Context, prog cli.Program, opts showOptions, overrides []string) error {
	experiment, err := opts.Load(ctx, opts.module, overrides)
	if err != nil {
		return err
	}
	var modules []string
	if opts.module != "" {
		module, err := experiment.Module(opts.module)
		if err != nil {
			return err
		}
		modules = []string{module.Name}
	}
	experiments.LogReport(slog.New(prog.Lines(prog.Err, slog.LevelWarn)), experiment.Report)
	text, err := opts.format.Render(experiment.View(modules...), opts.origin)
	if err != nil {
		return err
	}
	if _, err := prog.Out.Write(text); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
