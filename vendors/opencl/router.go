package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

//go:embed router.cl
var routerSource string

var routerProgram = NewProgram("router", routerSource, []string{"X", "Y", "B"},
	[]string{"SCORE=SIGMOID", "SCORE=SOFTMAX", "SCORE=SQRTSOFTPLUS", "BIAS", "ALL", "AUX"})

const (
	routerWithBias Flags = 8 << iota
	withAll
	withAux
)

// score returns the flag of a score function.
func score(f moe.ScoreFunction) Flags { return 1 << (f - moe.SigmoidScore) }

func topkFwd(e *opregistry.Exec, a moe.FusedTopkWithScoreFunctionFwdArgs) error {
	c := Begin(e)
	if a.GroupTopk > 0 {
		c.Decline("group_topk %d, this impl chooses among all experts", a.GroupTopk)
	}
	flags := score(a.ScoreFunction)
	if a.ExpertBias != nil {
		c.Vector("expert_bias", a.ExpertBias)
		flags |= routerWithBias
	}
	if a.UsePreSoftmax && a.ScoreFunction == moe.SoftmaxScore {
		flags |= withAll
	}
	return route(c, flags, a.Logits, a.Probs, a.RoutingMap, a.IntermediateOutput, a.ExpertBias, a.Topk, a.ScalingFactor.Or(1))
}

func scoreFwd(e *opregistry.Exec, a moe.FusedScoreForMoEAuxLossFwdArgs) error {
	return route(Begin(e), score(a.ScoreFunction)|withAll|withAux, a.Logits, a.Scores, a.RoutingMap, a.IntermediateOutput, nil, a.Topk, 1)
}

// route chooses and weights experts, each token by one work-item.
func route(c Call, flags Flags, logits, probs, routing, saved, bias *tensor.Tensor, topk int, scaling float32) error {
	x, p, chosen, kept := c.Rows("logits", logits), c.Rows("probs", probs), c.AnyRows("routing_map", routing), c.Rows("intermediate_output", saved)
	if c.Err != nil {
		return c.Err
	}
	types := Types{logits.DType(), probs.DType()}
	if bias != nil {
		types[2] = bias.DType()
	}
	l := c.Kernel(routerProgram, "router", types, flags).Mat(x, p, chosen, kept)
	if bias != nil {
		l.Vec(bias)
	}
	return l.U32(x.Rows, x.Cols).Items(x.Rows, x.Cols*topk).U32(topk).F32(scaling).Run()
}

func topkBwd(e *opregistry.Exec, a moe.FusedTopkWithScoreFunctionBwdArgs) error {
	flags := score(a.ScoreFunction)
	if a.UsePreSoftmax && a.ScoreFunction == moe.SoftmaxScore {
		flags |= withAll
	}
	return routeBwd(Begin(e), flags, a.IntermediateOutput, a.GradProbs, a.GradLogits, a.RoutingMap, a.Topk, a.ScalingFactor.Or(1))
}

func scoreBwd(e *opregistry.Exec, a moe.FusedScoreForMoEAuxLossBwdArgs) error {
	return routeBwd(Begin(e), score(a.ScoreFunction)|withAll|withAux, a.IntermediateOutput, a.GradScores, a.GradLogits, nil, a.Topk, 1)
}

// routeBwd computes the gradient of route. Without a routing map all experts are chosen.
func routeBwd(c Call, flags Flags, saved, grad, dlogits, routing *tensor.Tensor, topk int, scaling float32) error {
	kept, g, dx := c.Rows("intermediate_output", saved), c.Rows("grad_probs", grad), c.Rows("grad_logits", dlogits)
	var chosen Rows
	if routing != nil {
		chosen = c.AnyRows("routing_map", routing)
	}
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(routerProgram, "router_bwd", Types{dlogits.DType(), grad.DType()}, flags).Mat(kept, g, dx)
	if routing != nil {
		l.Mat(chosen)
	}
	return l.U32(dx.Rows, dx.Cols).Items(dx.Rows, 4*dx.Cols).U32(topk).F32(scaling).Run()
}
