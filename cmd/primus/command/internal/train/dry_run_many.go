package train

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/report"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/train"
)

// dryRunMany prints what training each of several experiments would start. An experiment that has
// no module of this stage is planned for the stage that it has.
func dryRunMany(ctx context.Context, prog cli.Program, s experiments.Stage, opts *Options, files, overrides []string) error {
	var all []report.Launch
	failed := false
	var said bytes.Buffer
	log := slog.New(prog.Lines(&said, slog.LevelWarn))
	err := graph.WithBackends(ctx, prog, log, func(p graph.PlanParams) error {
		for _, file := range files {
			if err := ctx.Err(); err != nil {
				return err
			}
			said.Reset()
			plan, err := func() (*train.Plan, error) {
				e, stage, err := opts.loadFor(ctx, file, s, overrides)
				if err != nil {
					return nil, err
				}
				experiments.LogReport(log, e.Report)
				settings := opts.run.Settings(e, stage, log)
				settings.Backends, settings.Patches = p.Backends, p.Patches
				return train.NewPlan(ctx, settings)
			}()
			launch := report.Launch{File: file}
			if err != nil {
				launch.Error, failed = err.Error(), true
			} else {
				launch = report.NewLaunch(plan)
			}
			for line := range strings.Lines(said.String()) {
				launch.Warnings = append(launch.Warnings, strings.TrimSpace(line))
			}
			all = append(all, launch)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if opts.output == cli.OutputJSON {
		err = cli.WriteJSON(prog.Out, all)
	} else {
		_, err = io.WriteString(prog.Out, report.Launches(all))
	}
	if err == nil && failed {
		err = cli.ErrReported
	}
	return err
}

// loadFor reads an experiment for a stage, or for the other one if it has only that.
func (o *Options) loadFor(ctx context.Context, file string, s experiments.Stage, overrides []string) (*config.Experiment, experiments.Stage, error) {
	e, err := o.Read(ctx, file, func(settings *config.Options) {
		settings.Overrides = overrides
		if len(overrides) > 0 {
			settings.Module = s.Module
		}
	})
	if err != nil {
		return nil, s, err
	}
	for _, other := range []experiments.Stage{s, experiments.Pretrain, experiments.Posttrain} {
		if slices.ContainsFunc(e.Modules, func(m *config.Module) bool { return m.Name == other.Module }) {
			return e, other, nil
		}
	}
	return e, s, nil
}
