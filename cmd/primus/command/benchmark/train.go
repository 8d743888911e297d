package benchmark

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/benchmarks/peak"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// benchmarkTrainOptions are the flags of `primus benchmark train`.
type benchmarkTrainOptions struct {
	experiments.TrainingOptions
	steps, warmup uint
	output        cli.OutputFormat
}

// trainBenchmark is the result of `primus benchmark train`.
type trainBenchmark struct {
	Model           string         `json:"model"`
	Parameters      int            `json:"parameters"`
	Shape           benchmarkShape `json:"shape"`
	Threads         int            `json:"threads"`
	TokensPerStep   int            `json:"tokens_per_step"`
	TokensPerSecond float64        `json:"tokens_per_second"` // of the median step
	Step            spread         `json:"step_ms"`
	FLOPsPerToken   float64        `json:"flops_per_token"`
	PeakFLOPS       float64        `json:"peak_flops"` // of all threads, measured before each step, median; 0 where there is no kernel for it
	MFU             float64        `json:"mfu"`        // tokens_per_second · flops_per_token / peak_flops
	PeakBytes       uint64         `json:"peak_bytes"` // largest resident set of the process; 0 where the system does not tell
	Loss            float64        `json:"loss"`       // of the last step, nats per token
	Ops             []opShare      `json:"ops"`
	OutsideOps      float64        `json:"outside_ops_ms"` // of a mean step
}

// benchmarkShape is what a peer needs to train the same model.
type benchmarkShape struct {
	Layers       int  `json:"layers"`
	Hidden       int  `json:"hidden"`
	FFN          int  `json:"ffn"`
	Heads        int  `json:"heads"`
	Groups       int  `json:"groups"`
	Vocab        int  `json:"vocab"`
	Seq          int  `json:"seq"`
	Batch        int  `json:"batch"` // sequences of a micro-batch
	MicroBatches int  `json:"micro_batches"`
	Tied         bool `json:"tied"`
}

// opShare is what one impl did for an op in a mean step.
type opShare struct {
	Op        string          `json:"op"`
	Impl      string          `json:"impl"`
	Kind      opregistry.Kind `json:"kind"`
	Calls     float64         `json:"calls"`
	MS        float64         `json:"ms"`
	Share     float64         `json:"share"` // of the step
	Fallbacks uint64          `json:"fallbacks"`
}

func newBenchmarkTrainCommand(prog cli.Program) *cobra.Command {
	var opts benchmarkTrainOptions
	opts.Extras = prog.Extras
	cmd := &cobra.Command{
		Use:   "train --config FILE [key=value…]",
		Short: "Measure training steps of an experiment, and what each op takes of them",
		Long: `Measure training steps of an experiment: forward, backward, clipping and AdamW over a
batch of random tokens, with every parameter of the experiment. No data is read, no
file is written.

The table splits a mean step by op and implementation. Model FLOPs utilisation is

  MFU = tokens/s × FLOP/token ÷ FMA peak of all threads, measured between the steps
  FLOP/token = 6·W + 6·layers·heads·head_dim·seq_length

where W counts the weights that enter matrix products, and attention is counted at
half, as the causal mask leaves it. Memory is the largest resident set of the process.

Only the native backend is measured. Policy and flags are those of primus train.`,
		Example: `  primus benchmark train --config examples/native/configs/llama_6M-pretrain.yaml
  primus benchmark train --config exp.yaml --steps 20 micro_batch_size=8 global_batch_size=8
  primus benchmark train --config exp.yaml --per-op 'generic_gemm=vendor:onednn|flagos' -o json`,
		DisableFlagParsing: true, // as train
		ValidArgsFunction:  experiments.CompleteTrain(prog, "pre_trainer"),
	}
	flags := cmd.Flags()
	opts.TrainingOptions.AddFlags(flags)
	flags.UintVar(&opts.steps, "steps", 10, "measure `N` steps")
	flags.UintVar(&opts.warmup, "warmup", 3, "make `N` steps before")
	opts.output.AddFlag(cmd)
	for _, name := range []string{"steps", "warmup", "output"} {
		flags.Lookup(name).Annotations = map[string][]string{cli.VariableOnly: nil}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
			return cmd.Help()
		}
		overrides, err := experiments.ParseTrainArgs(cmd, longOutput(args))
		if err != nil {
			return err
		}
		if err := opts.Check(cmd, overrides); err != nil {
			return err
		}
		if opts.steps == 0 {
			return cli.Usagef(cmd, "--steps: got 0, want at least one step to measure")
		}
		return runBenchmarkTrain(cmd.Context(), prog, opts, overrides)
	}
	return cmd
}

// longOutput writes out -o, the only short flag of a command whose other words may be overrides.
func longOutput(args []string) []string {
	long := slices.Clone(args)
	for i, word := range long {
		switch rest, ok := strings.CutPrefix(word, "-o"); {
		case !ok:
		case rest == "":
			long[i] = "--output"
		default:
			long[i] = "--output=" + strings.TrimPrefix(rest, "=")
		}
	}
	return long
}

// benchmarkParams are what measuring steps needs of the graph.
type benchmarkParams struct {
	fx.In
	Policy  oppolicy.Policy
	Device  device.Backend
	Exec    *opregistry.Exec
	Manager *opmanager.Manager
}

func runBenchmarkTrain(ctx context.Context, prog cli.Program, opts benchmarkTrainOptions, overrides []string) error {
	const name = "pre_trainer"
	experiment, err := opts.Load(name, overrides)
	if err != nil {
		return err
	}
	module, err := experiment.Module(name)
	if err != nil {
		return err
	}
	if module.Framework != native.Framework {
		return cli.UsageError{Err: fmt.Errorf("benchmark train: module %q has framework %q, want %s: other backends are not measured", name, module.Framework, native.Framework)}
	}
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	experiments.LogReport(log, experiment.Report)
	var p benchmarkParams
	set := graph.Config{Threads: int(opts.Threads), Timing: true, Log: log, Policy: opts.PolicySources(module), Extras: prog.Extras}
	return graph.Run(ctx, func() error {
		result, err := measureSteps(ctx, p, module, log, int(opts.warmup), int(opts.steps))
		if err != nil {
			return err
		}
		if opts.output == cli.OutputJSON {
			return cli.WriteJSON(prog.Out, result)
		}
		return printTrainBenchmark(prog, result)
	}, graph.Core(set), fx.Invoke(func(built benchmarkParams) { p = built }))
}

// measureSteps makes steps of a module and returns what those after the warm-up took.
func measureSteps(ctx context.Context, p benchmarkParams, module *config.Module, log *slog.Logger, warmup, steps int) (r trainBenchmark, err error) {
	bench, warnings, err := native.NewBench(module, p.Manager, p.Device, log)
	for _, w := range warnings {
		log.Warn(w.String())
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()

	var before []opmanager.ImplStats
	var times []time.Duration
	var sum time.Duration
	var peaks []float64
	for i := range warmup + steps {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if i == warmup {
			before = p.Manager.Stats()
		}
		if i >= warmup {
			peaks = append(peaks, peak.FLOPS(p.Exec.Pool()))
		}
		begin := time.Now()
		if r.Loss, err = bench.Step(ctx); err != nil {
			return r, err
		}
		if i >= warmup {
			times = append(times, time.Since(begin))
			sum += times[len(times)-1]
		}
	}
	r.describe(bench.Args())
	r.PeakBytes = peakMemory()
	r.Threads = p.Exec.Pool().Workers()
	r.Step = spreadOf(times)
	r.TokensPerSecond = float64(r.TokensPerStep) / (r.Step.Median / 1e3)
	r.PeakFLOPS = stats.Median(peaks)
	r.MFU = share(r.TokensPerSecond*r.FLOPsPerToken, r.PeakFLOPS)
	r.Ops = opShares(before, p.Manager.Stats(), sum, steps)
	r.OutsideOps = 1e3 * sum.Seconds() / float64(steps)
	for _, o := range r.Ops {
		r.OutsideOps -= o.MS
	}
	return r, nil
}

func (r *trainBenchmark) describe(a native.Args) {
	r.Model, r.Parameters = a.ModelName, a.NumParameters()
	r.TokensPerStep = a.GlobalBatchSize * a.SeqLength
	r.FLOPsPerToken = a.FLOPsPerToken()
	r.Shape = benchmarkShape{
		Layers: a.NumLayers, Hidden: a.HiddenSize, FFN: a.FFNHiddenSize, Heads: a.NumAttentionHeads, Groups: a.Groups(),
		Vocab: a.VocabSize, Seq: a.SeqLength, Batch: a.MicroBatchSize, MicroBatches: a.GlobalBatchSize / a.MicroBatchSize,
		Tied: !a.Untie,
	}
}

// opShares returns what was done between two readings of the manager's counters, in a mean of
// steps.
func opShares(before, after []opmanager.ImplStats, took time.Duration, steps int) []opShare {
	type key struct{ op, impl string }
	was := map[key]opmanager.ImplStats{}
	for _, s := range before {
		was[key{s.Op, s.ID}] = s
	}
	shares := []opShare{}
	for _, s := range after {
		old := was[key{s.Op, s.ID}]
		calls, spent := s.Calls-old.Calls, s.Duration-old.Duration
		if calls == 0 {
			continue
		}
		shares = append(shares, opShare{
			Op: s.Op, Impl: s.ID, Kind: s.Kind, Calls: float64(calls) / float64(steps),
			MS: 1e3 * spent.Seconds() / float64(steps), Share: share(spent.Seconds(), took.Seconds()), Fallbacks: s.Fallbacks - old.Fallbacks,
		})
	}
	descending(shares, func(s opShare) float64 { return s.MS })
	return shares
}

func printTrainBenchmark(prog cli.Program, r trainBenchmark) error {
	var b strings.Builder
	fmt.Fprintf(&b, "model       %s, %.2f M parameters\n", r.Model, float64(r.Parameters)/1e6)
	fmt.Fprintf(&b, "step        %v, %d tokens on %d threads\n", r.Step, r.TokensPerStep, r.Threads)
	fmt.Fprintf(&b, "throughput  %.0f tokens/s\n", r.TokensPerSecond)
	fmt.Fprintf(&b, "compute     %.1f GFLOP/s at %.1f MFLOP a token", r.TokensPerSecond*r.FLOPsPerToken/1e9, r.FLOPsPerToken/1e6)
	if r.PeakFLOPS > 0 {
		fmt.Fprintf(&b, ", MFU %.3f of an FMA peak of %.0f GFLOP/s", r.MFU, r.PeakFLOPS/1e9)
	}
	b.WriteByte('\n')
	if r.PeakBytes > 0 {
		fmt.Fprintf(&b, "memory      %.0f MiB at most\n", float64(r.PeakBytes)/(1<<20))
	}
	t := plaintext.NewTable(table.Row{"op", "impl", "kind", "calls", "ms a step", "share", "fallbacks"}, 4, 5, 6, 7)
	for _, o := range r.Ops {
		t.AppendRow(table.Row{o.Op, o.Impl, o.Kind, fmt.Sprintf("%.4g", o.Calls), fmt.Sprintf("%.2f", o.MS), fmt.Sprintf("%.1f %%", 100*o.Share), plaintext.Count(o.Fallbacks)})
	}
	t.AppendRow(table.Row{"(outside of ops)", "", "", "", fmt.Sprintf("%.2f", r.OutsideOps), fmt.Sprintf("%.1f %%", 100*share(r.OutsideOps, r.meanStep())), ""})
	_, err := fmt.Fprintf(prog.Out, "%s\n%s\n", b.String(), plaintext.Render(t))
	return err
}

// meanStep returns the milliseconds of a mean step, which ops and the rest add up to.
func (r *trainBenchmark) meanStep() float64 {
	mean := r.OutsideOps
	for _, o := range r.Ops {
		mean += o.MS
	}
	return mean
}
