package megatron

import (
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// framework says how Megatron-LM is started and how its log is read. Its last rank writes the lines
// of the steps.
var framework = python.Framework{
	Name: Framework, Job: python.ShimJob, Step: python.MegatronStep, Steps: steps, TokensPerStep: tokensPerStep, FromLast: true,
}

// steps returns the number of steps of a run.
func steps(tc *backend.TrainContext) int { return python.Integer(tc, "train_iters") }

// tokensPerStep returns the tokens of the global batch, which by default is one micro-batch per
// data-parallel rank.
func tokensPerStep(tc *backend.TrainContext, world int) int {
	sequences := python.Integer(tc, "global_batch_size")
	if sequences <= 0 {
		replicas := world
		for _, size := range []string{"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"} {
			replicas /= max(python.Integer(tc, size), 1)
		}
		sequences = python.Integer(tc, "micro_batch_size") * max(replicas, 1)
	}
	return sequences * python.Integer(tc, "seq_length")
}
