package ops

import (
	"errors"
	"fmt"
	"io"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/timeline"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// traceOptions are the flags of `primus ops trace`.
type traceOptions struct {
	experiments.TrainingOptions
	steps, warmup uint
	file          string
}

func newOpsTraceCommand(prog cli.Program) *cobra.Command {
	var opts traceOptions
	opts.Program = prog
	cmd := &cobra.Command{
		Use:   "trace --config FILE [key=value…]",
		Short: "Write a timeline of the calls of some steps",
		Long: `Make steps of an experiment on a batch of random tokens and write when each call of an
op began and ended, in the trace event format: open the file with
https://ui.perfetto.dev or chrome://tracing. Each call has its implementation, operands,
bytes, layer and phase. Calls that overlap are in separate lanes. No data is read. train
--trace-file does the same for steps of a run, also of several ranks.`,
		Example: `  primus ops trace --config exp.yaml --steps 3 --trace-file trace.json
  primus ops trace --config exp.yaml --threads 1 --prefer vendor
  primus ops trace join trace.rank-*.json --trace-file trace.json`,
	}
	flags := cmd.Flags()
	opts.TrainingOptions.AddFlags(flags)
	flags.UintVar(&opts.steps, "steps", 3, "trace `N` steps")
	flags.UintVar(&opts.warmup, "warmup", 1, "make `N` steps first, which are not traced")
	addTraceFile(flags, &opts.file)
	for _, name := range []string{"steps", "warmup", "trace-file"} {
		cli.WithoutVariable(flags, name)
	}
	experiments.TakeOverrides(prog, cmd, experiments.Pretrain.Module, func(cmd *cobra.Command, overrides []string) error {
		if err := opts.Check(cmd, overrides); err != nil {
			return err
		}
		if opts.steps == 0 {
			return cli.Usagef(cmd, "--steps: given 0, want at least one step")
		}
		if err := writable("trace-file", opts.file); err != nil {
			return err
		}
		return opts.WithSteps(cmd.Context(), prog, "ops trace", overrides, func(p experiments.StepParams) error {
			line, name, err := opts.trace(cmd, p)
			if err != nil {
				return err
			}
			if err := durable.WriteFile(opts.file, func(w io.Writer) error { return line.WriteJSON(w, "primus "+name, 0) }); err != nil {
				return fmt.Errorf("--trace-file: %w", err)
			}
			return sayTrace(prog, opts.file, plaintext.Quantity(line.Calls(), "call", "calls"))
		})
	})
	cmd.AddCommand(newOpsTraceJoinCommand(prog))
	return cmd
}

func addTraceFile(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "trace-file", "trace.json", "write the timeline to `FILE`")
}

func sayTrace(prog cli.Program, file, with string) error {
	_, err := fmt.Fprintf(prog.Out, "%s with %s; open it with https://ui.perfetto.dev or chrome://tracing\n", file, with)
	return err
}

func newOpsTraceJoinCommand(prog cli.Program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "join FILE…",
		Short: "Make one timeline of those of several ranks",
		Long: `Make one timeline of those that the ranks of a run have written with train --trace-file,
with a process for each rank. The clocks of their machines are trusted.`,
		Example: `  primus ops trace join trace.rank-*.json --trace-file trace.json`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writable("trace-file", file); err != nil {
				return err
			}
			if err := timeline.JoinFiles(file, args); err != nil {
				return err
			}
			return sayTrace(prog, file, plaintext.Quantity(len(args), "rank", "ranks"))
		},
	}
	addTraceFile(cmd.Flags(), &file)
	cli.WithoutVariable(cmd.Flags(), "trace-file")
	return cmd
}

// trace makes the steps. It returns the timeline and the name of the model.
func (o *traceOptions) trace(cmd *cobra.Command, p experiments.StepParams) (line *timeline.Timeline, name string, err error) {
	bench, warnings, err := native.NewBench(p.Module, p.Manager, p.Device, p.Log)
	for _, w := range warnings {
		p.Log.Warn(w.String())
	}
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	for range o.warmup {
		if _, err := bench.Step(cmd.Context()); err != nil {
			return nil, "", err
		}
	}
	line = &timeline.Timeline{}
	defer p.Manager.Tap(line)()
	for step := range o.steps {
		line.SetStep(int(step) + 1)
		if _, err := bench.Step(cmd.Context()); err != nil {
			return nil, "", err
		}
	}
	line.SetStep(0)
	return line, bench.Args().ModelName, nil
}
