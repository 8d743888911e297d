package megatronbridge

import (
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// framework says how Megatron-Bridge is started. It writes the log lines of Megatron-LM.
var framework = python.Framework{
	Name: Framework, Job: python.ShimJob, Step: python.MegatronStep, Steps: steps, TokensPerStep: tokensPerStep, FromLast: true,
}

// steps returns the number of steps of a run if the experiment sets it; otherwise the recipe
// decides.
func steps(tc *backend.TrainContext) int { return python.Integer(tc, "train_iters") }

// tokensPerStep returns the tokens of the global batch if the experiment sets it.
func tokensPerStep(tc *backend.TrainContext, _ int) int {
	return python.Integer(tc, "global_batch_size") * python.Integer(tc, "seq_length")
}
