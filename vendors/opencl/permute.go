package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

//go:embed permute.cl
var permuteSource string

var permuteProgram = NewProgram("permute", permuteSource, []string{"X"}, []string{"PROB"})

const withProb Flags = 1

// maxPairs bounds the pairs of token and expert, each of which is compared with all others.
const maxPairs = 1 << 15

// moeImpls returns the impls of the family.
func moeImpls() []opregistry.Impl {
	return []opregistry.Impl{
		Impl(moe.MoEPermuteFwd, permuteFwd, Storage),
		Impl(moe.MoEPermuteBwd, unpermute, Storage),
		Impl(moe.MoEUnpermuteFwd, unpermute, Storage),
		Impl(moe.MoEUnpermuteBwd, unpermuteBwd, Storage),

		Impl(moe.FusedTopkWithScoreFunctionFwd, topkFwd, Storage),
		Impl(moe.FusedTopkWithScoreFunctionBwd, topkBwd, Storage),
		Impl(moe.FusedScoreForMoEAuxLossFwd, scoreFwd, Storage),
		Impl(moe.FusedScoreForMoEAuxLossBwd, scoreBwd, Storage),
		Impl(moe.FusedMoEAuxLossFwd, auxLossFwd, Storage),
		Impl(moe.FusedMoEAuxLossBwd, auxLossBwd, Storage),
	}
}

// permuteFwd ranks the pairs of token and expert and copies rows to their ranks.
func permuteFwd(e *opregistry.Exec, a moe.MoEPermuteFwdArgs) error {
	c := Begin(e)
	x, y := c.Rows("input", a.Input), c.Rows("output", a.Output)
	c.Numbers("indices", a.Indices, tensor.I32)
	c.Numbers("row_id_map", a.RowIDMap, tensor.I32)
	n := a.Indices.NumElements()
	if n > maxPairs {
		c.Decline("%d pairs of token and expert, this impl serves up to %d", n, maxPairs)
	}
	if c.Err != nil || n == 0 {
		return c.Err
	}
	types, topk := Types{a.Input.DType()}, a.Indices.Shape()[1]
	l := c.Kernel(permuteProgram, "place", types, 0).Vec(a.Indices, a.RowIDMap)
	if err := l.U32(x.Rows, topk, y.Rows).Alone(n).Run(); err != nil {
		return err
	}
	return c.Kernel(permuteProgram, "permute", types, 0).Mat(x).Vec(a.RowIDMap).Mat(y).Rows(x.Rows, x.Cols).U32(topk).Run()
}

func unpermute(e *opregistry.Exec, a moe.MoEUnpermuteArgs) error {
	c := Begin(e)
	x, y, flags := c.Rows("input", a.Input), c.Rows("output", a.Output), Flags(0)
	c.Numbers("row_id_map", a.RowIDMap, tensor.I32)
	var prob Rows
	if a.Prob != nil {
		prob, flags = c.Rows("prob", a.Prob), withProb
	}
	if c.Err != nil || y.Rows == 0 {
		return c.Err
	}
	l := c.Kernel(permuteProgram, "unpermute", Types{a.Input.DType()}, flags).Mat(x).Vec(a.RowIDMap).Mat(y)
	if a.Prob != nil {
		l.Mat(prob)
	}
	return l.Rows(y.Rows, y.Cols).U32(a.RowIDMap.NumElements()/y.Rows, x.Rows).Run()
}

func unpermuteBwd(e *opregistry.Exec, a moe.MoEUnpermuteBwdArgs) error {
	c := Begin(e)
	dy, x, dx, flags := c.Rows("input_bwd", a.InputBwd), c.Rows("input_fwd", a.InputFwd), c.Rows("act_grad", a.ActGrad), Flags(0)
	c.Numbers("row_id_map", a.RowIDMap, tensor.I32)
	var prob, dprob Rows
	if a.Prob != nil {
		prob, dprob, flags = c.Rows("prob", a.Prob), c.Rows("prob_grad", a.ProbGrad), withProb
	}
	if c.Err != nil {
		return c.Err
	}
	types := Types{a.InputBwd.DType()}
	if err := c.Each(permuteProgram, "clear", types, flags, dx.Rows, dx.Cols, dx).Run(); err != nil || dy.Rows == 0 {
		return err
	}
	l := c.Kernel(permuteProgram, "unpermute_bwd", types, flags).Mat(dy, x).Vec(a.RowIDMap).Mat(dx)
	if a.Prob != nil {
		l.Mat(prob, dprob)
	}
	return l.Rows(dy.Rows, dy.Cols).U32(a.RowIDMap.NumElements()/dy.Rows, dx.Rows).Run()
}
