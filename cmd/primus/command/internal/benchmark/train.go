package benchmark

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/native/stepbench"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/spf13/cobra"
)

// benchmarkTrainOptions are the flags of `primus benchmark train`.
type benchmarkTrainOptions struct {
	experiments.TrainingOptions
	steps, warmup uint
	output        cli.OutputFormat
}

func newBenchmarkTrainCommand(prog cli.Program) *cobra.Command {
	var opts benchmarkTrainOptions
	opts.Program = prog
	cmd := &cobra.Command{
		Use:   "train --config FILE [key=value…]",
		Short: "Measure training steps of an experiment, and what each op takes of them",
		Long: `Measure training steps of an experiment: forward, backward, clipping and AdamW on a
batch of random tokens, with all parameters of the experiment. No data is read and no
file is written.

The table splits a mean step by op and implementation. Model FLOPs utilisation is

  MFU = tokens/s × FLOP/token ÷ FMA peak of all threads, measured between the steps
  FLOP/token = 6·W + 6·layers·heads·head_dim·seq_length

where W counts the weights in matrix products, and attention counts half because of the
causal mask. Memory is the largest resident set of the process.

Only the native backend is measured. Policy and flags are those of primus train.`,
		Example: `  primus benchmark train --config llama_6M-pretrain
  primus benchmark train --config exp.yaml --steps 20 micro_batch_size=8 global_batch_size=8
  primus benchmark train --config exp.yaml --per-op 'generic_gemm=vendor:onednn|flagos' -o json`,
	}
	flags := cmd.Flags()
	opts.TrainingOptions.AddFlags(flags)
	flags.UintVar(&opts.steps, "steps", 10, "measure `N` steps")
	flags.UintVar(&opts.warmup, "warmup", 3, "make `N` steps first, which are not measured")
	opts.output.AddFlag(cmd)
	for _, name := range []string{"steps", "warmup", "output"} {
		flags.Lookup(name).Annotations = map[string][]string{cli.VariableOnly: nil}
	}
	experiments.TakeOverrides(prog, cmd, "pre_trainer", func(cmd *cobra.Command, overrides []string) error {
		if err := opts.Check(cmd, overrides); err != nil {
			return err
		}
		if opts.steps == 0 {
			return cli.Usagef(cmd, "--steps: given 0, want at least one step to measure")
		}
		return runBenchmarkTrain(cmd.Context(), prog, opts, overrides)
	})
	return cmd
}

func runBenchmarkTrain(ctx context.Context, prog cli.Program, opts benchmarkTrainOptions, overrides []string) error {
	return opts.WithSteps(ctx, prog, "benchmark train", overrides, func(p experiments.StepParams) error {
		result, err := stepbench.Measure(ctx, stepbench.Settings{
			Module: p.Module, Manager: p.Manager, Device: p.Device, Pool: p.Exec.Pool(), Log: p.Log, Warmup: int(opts.warmup), Steps: int(opts.steps),
		})
		if err != nil {
			return err
		}
		return opts.output.Print(prog.Out, result, func() error { return printTrainBenchmark(prog, result) })
	})
}

func printTrainBenchmark(prog cli.Program, r stepbench.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "model       %s, %.2f M parameters\n", r.Model, float64(r.Parameters)/1e6)
	fmt.Fprintf(&b, "step        %v, %d tokens on %d threads\n", r.Step, r.TokensPerStep, r.Threads)
	fmt.Fprintf(&b, "throughput  %.0f tokens/s\n", r.TokensPerSecond)
	fmt.Fprintf(&b, "compute     %.1f GFLOP/s at %.1f MFLOP per token", r.TokensPerSecond*r.FLOPsPerToken/1e9, r.FLOPsPerToken/1e6)
	if r.PeakFLOPS > 0 {
		fmt.Fprintf(&b, ", MFU %.3f of an FMA peak of %.0f GFLOP/s", r.MFU, r.PeakFLOPS/1e9)
	}
	b.WriteByte('\n')
	if r.PeakBytes > 0 {
		fmt.Fprintf(&b, "memory      %.0f MiB at most\n", float64(r.PeakBytes)/(1<<20))
	}
	t := plaintext.NewTable(table.Row{"op", "impl", "kind", "calls", "ms per step", "share", "fallbacks"}, 4, 5, 6, 7).
		Optional("kind")
	for _, o := range r.Ops {
		t.AppendRow(table.Row{o.Op, o.Impl, o.Kind, fmt.Sprintf("%.4g", o.Calls), fmt.Sprintf("%.2f", o.MS), fmt.Sprintf("%.1f %%", 100*o.Share), plaintext.Count(o.Fallbacks)})
	}
	t.AppendRow(table.Row{"(outside of ops)", "", "", "", fmt.Sprintf("%.2f", r.OutsideOps), fmt.Sprintf("%.1f %%", 100*stats.Share(r.OutsideOps, r.MeanStep())), ""})
	_, err := fmt.Fprintf(prog.Out, "%s\n%s\n", b.String(), plaintext.Render(prog.Out, t))
	return err
}
