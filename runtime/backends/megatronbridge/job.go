package megatronbridge

import (
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/internal/python"
	"github.com/primus-fl/primus/runtime/launch"
)

// framework says how Megatron-Bridge is started. It writes the log lines of Megatron-LM.
var framework = python.Framework{
	Name: Framework, Job: job, Step: python.MegatronStep, Steps: steps, TokensPerStep: tokensPerStep, FromLast: true,
}

func job(tc *backend.TrainContext, dir string) (launch.Job, error) { return python.ShimJob(tc, dir) }

func integer(tc *backend.TrainContext, key string) int {
	v, _ := tc.Args.Lookup(key)
	n, _ := v.Int64()
	return int(n)
}

// steps returns the number of steps of a run if the experiment sets it; otherwise the recipe
// decides.
func steps(tc *backend.TrainContext) int { return integer(tc, "train_iters") }

// tokensPerStep returns the tokens of the global batch if the experiment sets it.
func tokensPerStep(tc *backend.TrainContext, _ int) int {
	return integer(tc, "global_batch_size") * integer(tc, "seq_length")
}
