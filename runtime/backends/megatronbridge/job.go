package megatronbridge

import (
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/internal/python"
	"github.com/primus-fl/primus/runtime/launch"
)

// framework is how Megatron-Bridge is started. It writes the lines of Megatron-LM.
var framework = python.Framework{
	Name: Framework, Job: job, Step: python.MegatronStep, Steps: steps, TokensPerStep: tokensPerStep, FromLast: true,
}

func job(tc *backend.TrainContext, dir string) (launch.Job, error) { return python.ShimJob(tc, dir) }

func integer(tc *backend.TrainContext, key string) int {
	v, _ := tc.Args.Lookup(key)
	n, _ := v.Int64()
	return int(n)
}

// steps is how many steps a run has, where the experiment says it; a recipe has a number of its
// own.
func steps(tc *backend.TrainContext) int { return integer(tc, "train_iters") }

// tokensPerStep is the global batch, where the experiment says it.
func tokensPerStep(tc *backend.TrainContext, _ int) int {
	return integer(tc, "global_batch_size") * integer(tc, "seq_length")
}
