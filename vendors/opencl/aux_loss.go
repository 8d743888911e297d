package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

//go:embed aux_loss.cl
var auxLossSource string

var auxLossProgram = NewProgram("aux_loss", auxLossSource, []string{"X", "STORED"}, []string{"COUNT=int", "COUNT=long"})

// counts requires the numbers of tokens and returns the flag of their type, 0 for a dtype of
// kernel.Storage.
func counts(c *Call, t *tensor.Tensor) Flags {
	if d := t.DType(); d == tensor.I32 || d == tensor.I64 {
		return c.Index("tokens_per_expert", t)
	}
	c.Vector("tokens_per_expert", t)
	return 0
}

func auxLossFwd(e *opregistry.Exec, a moe.FusedMoEAuxLossFwdArgs) error {
	c := Begin(e)
	probs, flags := c.Rows("probs", a.Probs), counts(&c, a.TokensPerExpert)
	c.Vector("aux_loss", a.AuxLoss)
	c.Numbers("const_buf", a.ConstBuf, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	n := float64(a.TotalNumTokens)
	factor := float64(a.NumExperts) * float64(a.Coeff) / (float64(a.Topk) * n * n)
	l := c.Kernel(auxLossProgram, "aux_loss", Types{a.Probs.DType(), a.TokensPerExpert.DType()}, flags)
	return l.Mat(probs).Vec(a.TokensPerExpert, a.AuxLoss, a.ConstBuf).U32(probs.Rows, probs.Cols).F32(float32(factor)).RunGroups(1, 1)
}

func auxLossBwd(e *opregistry.Exec, a moe.FusedMoEAuxLossBwdArgs) error {
	c := Begin(e)
	dprobs, flags := c.Rows("grad_probs", a.GradProbs), counts(&c, a.TokensPerExpert)
	c.Vector("grad_aux_loss", a.GradAuxLoss)
	c.Numbers("const_buf", a.ConstBuf, tensor.F32)
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(auxLossProgram, "aux_loss_bwd", Types{a.GradProbs.DType(), a.TokensPerExpert.DType()}, flags)
	return l.Vec(a.ConstBuf, a.TokensPerExpert, a.GradAuxLoss).Mat(dprobs).U32(dprobs.Rows, dprobs.Cols).Items(dprobs.Rows, dprobs.Cols).Run()
}
