package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

//go:embed router.cl
var routerSource string

var routerProgram = newProgram("router", routerSource, []string{"X", "Y", "B"},
	[]string{"SCORE=SIGMOID", "SCORE=SOFTMAX", "SCORE=SQRTSOFTPLUS", "BIAS", "ALL", "AUX"})

const (
	routerWithBias macroFlags = 8 << iota
	withAll
	withAux
)

// score returns the flag of a score function.
func score(f moe.ScoreFunction) macroFlags { return 1 << (f - moe.SigmoidScore) }

func topkFwd(e *opregistry.Exec, a moe.FusedTopkWithScoreFunctionFwdArgs) error {
	c := begin(e)
	if a.GroupTopk > 0 {
		c.decline("group_topk %d, this impl chooses among all experts", a.GroupTopk)
	}
	flags := score(a.ScoreFunction)
	if a.ExpertBias != nil {
		c.vector("expert_bias", a.ExpertBias)
		flags |= routerWithBias
	}
	if a.UsePreSoftmax && a.ScoreFunction == moe.SoftmaxScore {
		flags |= withAll
	}
	return route(c, flags, a.Logits, a.Probs, a.RoutingMap, a.IntermediateOutput, a.ExpertBias, a.Topk, a.ScalingFactor.Or(1))
}

func scoreFwd(e *opregistry.Exec, a moe.FusedScoreForMoEAuxLossFwdArgs) error {
	return route(begin(e), score(a.ScoreFunction)|withAll|withAux, a.Logits, a.Scores, a.RoutingMap, a.IntermediateOutput, nil, a.Topk, 1)
}

// route chooses and weights experts, each token by one work-item.
func route(c kernelCall, flags macroFlags, logits, probs, routing, saved, bias *tensor.Tensor, topk int, scaling float32) error {
	x, p, chosen, kept := c.rows("logits", logits), c.rows("probs", probs), c.anyRows("routing_map", routing), c.rows("intermediate_output", saved)
	if c.Err != nil {
		return c.Err
	}
	types := typeList{logits.DType(), probs.DType()}
	if bias != nil {
		types[2] = bias.DType()
	}
	l := c.kernel(routerProgram, "router", types, flags).mat(x, p, chosen, kept)
	if bias != nil {
		l.vec(bias)
	}
	return l.u32(x.Rows, x.Cols).items(x.Rows, x.Cols*topk).u32(topk).f32(scaling).Run()
}

func topkBwd(e *opregistry.Exec, a moe.FusedTopkWithScoreFunctionBwdArgs) error {
	flags := score(a.ScoreFunction)
	if a.UsePreSoftmax && a.ScoreFunction == moe.SoftmaxScore {
		flags |= withAll
	}
	return routeBwd(begin(e), flags, a.IntermediateOutput, a.GradProbs, a.GradLogits, a.RoutingMap, a.Topk, a.ScalingFactor.Or(1))
}

func scoreBwd(e *opregistry.Exec, a moe.FusedScoreForMoEAuxLossBwdArgs) error {
	return routeBwd(begin(e), score(a.ScoreFunction)|withAll|withAux, a.IntermediateOutput, a.GradScores, a.GradLogits, nil, a.Topk, 1)
}

// routeBwd computes the gradient of route. Without a routing map all experts are chosen.
func routeBwd(c kernelCall, flags macroFlags, saved, grad, dlogits, routing *tensor.Tensor, topk int, scaling float32) error {
	kept, g, dx := c.rows("intermediate_output", saved), c.rows("grad_probs", grad), c.rows("grad_logits", dlogits)
	var chosen rowView
	if routing != nil {
		chosen = c.anyRows("routing_map", routing)
	}
	if c.Err != nil {
		return c.Err
	}
	l := c.kernel(routerProgram, "router_bwd", typeList{dlogits.DType(), grad.DType()}, flags).mat(kept, g, dx)
	if routing != nil {
		l.mat(chosen)
	}
	return l.u32(dx.Rows, dx.Cols).items(dx.Rows, 4*dx.Cols).u32(topk).f32(scaling).Run()
}
