// Package benchmark is the commands that measure training steps and ops.
package benchmark

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/spf13/cobra"
)

// New returns the command `primus benchmark`.
func New(prog cli.Program) *cobra.Command {
	cmd := cli.Group("benchmark", "Measure training steps and ops",
		newBenchmarkTrainCommand(prog), newBenchmarkGemmCommand(prog),
		newBenchmarkAttentionCommand(prog), newBenchmarkOpsCommand(prog),
	)
	cmd.AddCommand(newRCCLCommand(prog), newStridedCommand(prog))
	for _, f := range families {
		cmd.AddCommand(newProductsCommand(prog, f))
	}
	cmd.Long = `Measure training steps and ops on this machine. Times are medians over repetitions, with
the 95 % confidence interval of the median, the fastest and the slowest. A share of the
peak relates a rate to that of fused multiply-adds in registers, measured on all threads
together.`
	cmd.Example = `  primus benchmark train --config llama_6M-pretrain
  primus benchmark train --config exp.yaml --per-op 'generic_gemm=vendor:onednn|flagos' -o json
  primus benchmark gemm --shape 2048x1536x512
  primus benchmark ops rmsnorm_fwd --shape 2048x512 -o csv`
	return cmd
}
