package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

//go:embed aux_loss.cl
var auxLossSource string

var auxLossProgram = newProgram("aux_loss", auxLossSource, []string{"X", "STORED"}, []string{"COUNT=int", "COUNT=long"})

// counts requires the numbers of tokens and returns the flag of their type, 0 for a dtype of
// Storage.
func counts(c *kernelCall, t *tensor.Tensor) macroFlags {
	if d := t.DType(); d == tensor.I32 || d == tensor.I64 {
		return c.index("tokens_per_expert", t)
	}
	c.vector("tokens_per_expert", t)
	return 0
}

func auxLossFwd(e *opregistry.Exec, a moe.FusedMoEAuxLossFwdArgs) error {
	c := begin(e)
	probs, flags := c.rows("probs", a.Probs), counts(&c, a.TokensPerExpert)
	c.vector("aux_loss", a.AuxLoss)
	c.numbers("const_buf", a.ConstBuf, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	n := float64(a.TotalNumTokens)
	factor := float64(a.NumExperts) * float64(a.Coeff) / (float64(a.Topk) * n * n)
	l := c.kernel(auxLossProgram, "aux_loss", typeList{a.Probs.DType(), a.TokensPerExpert.DType()}, flags)
	return l.mat(probs).vec(a.TokensPerExpert, a.AuxLoss, a.ConstBuf).u32(probs.Rows, probs.Cols).f32(float32(factor)).runGroups(1, 1)
}

func auxLossBwd(e *opregistry.Exec, a moe.FusedMoEAuxLossBwdArgs) error {
	c := begin(e)
	dprobs, flags := c.rows("grad_probs", a.GradProbs), counts(&c, a.TokensPerExpert)
	c.vector("grad_aux_loss", a.GradAuxLoss)
	c.numbers("const_buf", a.ConstBuf, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	l := c.kernel(auxLossProgram, "aux_loss_bwd", typeList{a.GradProbs.DType(), a.TokensPerExpert.DType()}, flags)
	return l.vec(a.ConstBuf, a.TokensPerExpert, a.GradAuxLoss).mat(dprobs).u32(dprobs.Rows, dprobs.Cols).items(dprobs.Rows, dprobs.Cols).Run()
}
