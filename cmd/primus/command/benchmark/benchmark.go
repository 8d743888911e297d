// Package benchmark is the commands that measure training steps and ops.
package benchmark

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/spf13/cobra"
)

// New returns the command `primus benchmark`.
func New(prog cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "benchmark",
		Short: "Measure training steps and ops",
		Long: `Measure training steps and ops on this machine. Times are medians over repetitions,
with the interval that holds the median with 95 % confidence, the fastest and the
slowest; a share of the peak is one of what fused
multiply-adds in registers, on all threads together, were measured to reach.`,
		Example: `  primus benchmark train --config examples/native/configs/llama_6M-pretrain.yaml
  primus benchmark train --config exp.yaml --per-op 'generic_gemm=vendor:onednn|flagos' -o json
  primus benchmark gemm --shape 2048x1536x512
  primus benchmark ops rmsnorm_fwd --shape 2048x512 -o csv`,
		Args: cli.SubcommandOnly,
		RunE: cli.ShowHelp,
	}
	cmd.AddCommand(
		newBenchmarkTrainCommand(prog), newBenchmarkGemmCommand(prog),
		newBenchmarkAttentionCommand(prog), newBenchmarkOpsCommand(prog),
	)
	return cmd
}

// spread sums up repeated measurements of one time, in milliseconds.
type spread struct {
	Median   float64        `json:"median"`
	Interval stats.Interval `json:"median_interval"`
	Min      float64        `json:"min"`
	Max      float64        `json:"max"`
	Count    int            `json:"count"`
}

// spreadOf returns the spread of at least one time.
func spreadOf(times []time.Duration) spread {
	ms := make([]float64, len(times))
	for i, t := range times {
		ms[i] = 1e3 * t.Seconds()
	}
	return spread{Median: stats.Median(ms), Interval: stats.MedianInterval(ms), Min: slices.Min(ms), Max: slices.Max(ms), Count: len(ms)}
}

// String writes the spread for people.
func (s spread) String() string {
	return fmt.Sprintf("%.4g ms, median of %d (%.4g to %.4g with %.0f %% confidence; all %.4g to %.4g)",
		s.Median, s.Count, s.Interval.Low, s.Interval.High, 100*s.Interval.Confidence, s.Min, s.Max)
}

// share returns part of whole, 0 when there is no whole.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// descending orders by a number, the greatest first.
func descending[T any](list []T, by func(T) float64) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(by(b), by(a)) })
}
