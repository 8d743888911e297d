package projection

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rateFlags are the flags that say how fast devices and links are.
type rateFlags struct {
	efficiency, measured, peak, peakFP8, hbm, inside, between float64
}

func (f *rateFlags) add(flags *pflag.FlagSet) {
	flags.Float64Var(&f.efficiency, "efficiency", 0.4, "matrix products reach this `FRACTION` of the peak of the device")
	flags.Float64Var(&f.measured, "measured-tflops", 0, "`TFLOP/s` that a device was measured to reach in training, in place of peak and efficiency")
	flags.Float64Var(&f.peak, "peak-bf16-tflops", 0, "peak of a device in bf16 in `TFLOP/s`; 0 is that of --gpu-arch")
	flags.Float64Var(&f.peakFP8, "peak-fp8-tflops", 0, "peak of a device in fp8 in `TFLOP/s`; 0 is that of --gpu-arch")
	flags.Float64Var(&f.hbm, "memory-bandwidth", 0, "bandwidth of the memory of a device in `GB/s`; 0 is that of --gpu-arch")
	flags.Float64Var(&f.inside, "intra-node-bandwidth", 0, "bandwidth of a device to others of its node in `GB/s`; 0 is that of --gpu-arch")
	flags.Float64Var(&f.between, "inter-node-bandwidth", 50, "bandwidth of a device to other nodes in `GB/s`")
}

// rates returns the flags, and what they leave open by the data sheet of the device.
func (f *rateFlags) rates(cmd *cobra.Command, d projection.Device) (projection.Rates, error) {
	given := func(flag, sheet float64) float64 {
		if flag != 0 {
			return flag
		}
		return sheet
	}
	r := projection.Rates{
		BF16: given(f.peak*1e12, d.BF16), FP8: given(f.peakFP8*1e12, d.FP8), Efficiency: f.efficiency, Measured: f.measured * 1e12,
		HBM: given(f.hbm*1e9, d.HBM), Inside: given(f.inside*1e9, d.Link), Between: f.between * 1e9,
	}
	if d.Name == "" && (f.peak == 0 && f.measured == 0 || f.hbm == 0 || f.inside == 0) {
		return r, cli.Usagef(cmd, "no rates of the device: want --gpu-arch NAME, or --peak-bf16-tflops, --memory-bandwidth and --intra-node-bandwidth")
	}
	if r.BF16 == 0 {
		r.BF16 = r.Measured
	}
	if err := r.Validate(); err != nil {
		return r, cli.UsageError{Err: err}
	}
	if r.Measured < 0 || r.FP8 < 0 {
		return r, cli.Usagef(cmd, "--measured-tflops: given %v, --peak-fp8-tflops: given %v, want numbers >= 0", f.measured, f.peakFP8)
	}
	return r, nil
}

func newPerformanceCommand(prog cli.Program) *cobra.Command {
	var opts options
	var rates rateFlags
	cmd := &cobra.Command{
		Use:   "performance --config FILE [key=value…]",
		Short: "Compute the work, the communication and the time of a training step",
		Long: `Compute the work and the communication of a step of a Megatron experiment, and the time
that it takes on devices of a given speed:

  step = micro batches · (forward + backward + recomputation + communication that
         nothing hides) · (1 + bubble) + exchange of gradients + optimizer

for the slowest pipeline stage. Every figure has its formula, and the assumptions are
listed. With a rate that was measured in a short run (--measured-tflops) the times are
those of that hardware; without one, the efficiency is a guess.`,
		Example: `  primus projection performance --config exp.yaml --gpu-arch MI300X
  primus projection performance --config exp.yaml --gpu-arch H100 --target-nodes 16 --inter-node-bandwidth 50
  primus projection performance --config exp.yaml --gpu-arch MI355X --measured-tflops 900 -o json`,
	}
	rates.add(cmd.Flags())
	opts.configure(prog, cmd, func(cmd *cobra.Command, module *config.Module) error {
		result, err := performanceOf(cmd, &opts, rates, module)
		if err != nil {
			return err
		}
		if opts.output.OutputFormat == cli.OutputJSON {
			return cli.WriteJSON(prog.Out, result)
		}
		return plaintext.WriteSections(prog.Out, opts.output.OutputFormat == cli.OutputMarkdown, performanceSections(result))
	})
	return cmd
}

// bothResult is what -o json prints.
type bothResult struct {
	Memory      *memoryResult      `json:"memory"`
	Performance *performanceResult `json:"performance"`
}

func newBothCommand(prog cli.Program) *cobra.Command {
	var opts options
	var flags rateFlags
	cmd := &cobra.Command{
		Use:   "both --config FILE [key=value…]",
		Short: "Compute the memory of a run and the time of its steps",
		Example: `  primus projection both --config exp.yaml --gpu-arch MI300X
  primus projection both --config exp.yaml --gpu-arch H100 -o md`,
	}
	flags.add(cmd.Flags())
	opts.configure(prog, cmd, func(cmd *cobra.Command, module *config.Module) error {
		performance, err := performanceOf(cmd, &opts, flags, module)
		if err != nil {
			return err
		}
		size, err := opts.sizes(cmd)
		if err != nil {
			return err
		}
		memory, err := memoryOf(performance.Plan, size, opts.margin)
		if err != nil {
			return err
		}
		if opts.output.OutputFormat == cli.OutputJSON {
			return cli.WriteJSON(prog.Out, bothResult{memory, performance})
		}
		return plaintext.WriteSections(prog.Out, opts.output.OutputFormat == cli.OutputMarkdown, append(memorySections(memory), performanceSections(performance)...))
	})
	return cmd
}

// performanceResult is what -o json prints.
type performanceResult struct {
	*projection.Plan
	Device      string                  `json:"device,omitempty"`
	Performance *projection.Performance `json:"performance"`
	Symbols     []string                `json:"symbols"`
	Assumptions []string                `json:"assumptions"`
}

func performanceOf(cmd *cobra.Command, o *options, flags rateFlags, m *config.Module) (*performanceResult, error) {
	if m.Framework == native.Framework {
		return nil, fmt.Errorf("the framework of %s is %s: primus benchmark train --config FILE measures its steps", m.Name, m.Framework)
	}
	size, err := o.sizes(cmd)
	if err != nil {
		return nil, err
	}
	rates, err := flags.rates(cmd, size.device)
	if err != nil {
		return nil, err
	}
	plan, err := o.plan(cmd, m)
	if err != nil {
		return nil, err
	}
	perf, err := plan.Performance(rates)
	if err != nil {
		return nil, err
	}
	return &performanceResult{Plan: plan, Device: size.device.Name, Performance: perf, Symbols: plan.Symbols(), Assumptions: plan.TimeAssumptions(rates)}, nil
}

func performanceSections(r *performanceResult) []plaintext.Section {
	perf, c := r.Performance, r.Parallel
	total, active := r.Model.Count()
	work := plaintext.Section{Title: "forward pass of one token", Header: table.Row{"part", "times", "FLOPs", "recomputed", "formula"}, Right: []int{2, 3, 4}, Optional: []string{"formula"}}
	for _, w := range perf.Work {
		work.Rows = append(work.Rows, table.Row{w.Part, w.Times, fmt.Sprintf("%.4g", w.Linear+w.Other), fmt.Sprintf("%.4g", w.Again), w.Formula})
	}
	traffic := plaintext.Section{
		Title:  fmt.Sprintf("what a device of stage %d sends in a step", perf.SlowestStage),
		Header: table.Row{"kind", "bytes", "link", "seconds", "not hidden", "overlap", "formula"}, Right: []int{2, 4, 5}, Optional: []string{"formula", "overlap"},
	}
	for _, x := range perf.Traffic {
		traffic.Rows = append(traffic.Rows, table.Row{x.Kind, sysmem.Text(x.Bytes), x.Link, fmt.Sprintf("%.4g", x.Seconds), fmt.Sprintf("%.4g", x.Exposed), x.Overlap, x.Formula})
	}
	times := plaintext.Section{Title: fmt.Sprintf("time of a step, by stage %d, which is the slowest", perf.SlowestStage), Header: table.Row{"part", "seconds", "formula", "numbers"}, Right: []int{2}, Optional: []string{"numbers", "formula"}}
	for _, x := range perf.Times {
		times.Rows = append(times.Rows, table.Row{x.Part, fmt.Sprintf("%.4g", x.Seconds), x.Formula, x.Numbers})
	}
	times.Rows = append(times.Rows, table.Row{"step", fmt.Sprintf("%.4g", perf.StepSeconds), "", ""})
	result := plaintext.Section{Title: "result", Lines: []string{
		fmt.Sprintf("step         %.4g s for %.0f tokens, %.4g FLOPs of the model (%.4g more are recomputed)", perf.StepSeconds, perf.TokensPerStep, perf.FLOPsPerStep, perf.Recomputed),
		fmt.Sprintf("throughput   %.5g tokens/s, %.5g per device", perf.TokensPerSecond, perf.TokensPerSecond/float64(c.World)),
		fmt.Sprintf("rate         %.4g TFLOP/s per device, %.3g %% of the peak", perf.FLOPSPerDevice/1e12, 100*perf.Utilisation),
		fmt.Sprintf("bubble       %.3g %% of the working time", 100*perf.Bubble),
	}}
	rates := fmt.Sprintf("rates        %s: %.4g TFLOP/s in bf16", plaintext.Dash(r.Device), perf.Rates.BF16/1e12)
	if perf.Rates.FP8 > 0 {
		rates += fmt.Sprintf(", %.4g in fp8", perf.Rates.FP8/1e12)
	}
	if perf.Rates.Measured > 0 {
		rates += fmt.Sprintf("; measured %.4g TFLOP/s", perf.Rates.Measured/1e12)
	} else {
		rates += fmt.Sprintf(", of which products reach %.3g %%", 100*perf.Rates.Efficiency)
	}
	rates += fmt.Sprintf("; memory %.4g GB/s, within a node %.4g, between nodes %.4g", perf.Rates.HBM/1e9, perf.Rates.Inside/1e9, perf.Rates.Between/1e9)
	sections := []plaintext.Section{{Lines: append(describe(r.Plan, projection.Memory{Parameters: total, Active: active}), rates)}, work}
	if len(traffic.Rows) > 0 {
		sections = append(sections, traffic)
	}
	return append(sections, times, result, plaintext.Section{Title: "symbols", Lines: r.Symbols}, plaintext.Section{Title: "assumptions", Lines: r.Assumptions})
}
