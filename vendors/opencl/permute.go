package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

//go:embed permute.cl
var permuteSource string

var permuteProgram = newProgram("permute", permuteSource, []string{"X"}, []string{"PROB"})

const withProb macroFlags = 1

// maxPairs bounds the pairs of token and expert, each of which is compared with all others.
const maxPairs = 1 << 15

// moeImpls returns the impls of the family.
func moeImpls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(moe.MoEPermuteFwd, permuteFwd, Storage),
		openclImpl(moe.MoEPermuteBwd, unpermute, Storage),
		openclImpl(moe.MoEUnpermuteFwd, unpermute, Storage),
		openclImpl(moe.MoEUnpermuteBwd, unpermuteBwd, Storage),

		openclImpl(moe.FusedTopkWithScoreFunctionFwd, topkFwd, Storage),
		openclImpl(moe.FusedTopkWithScoreFunctionBwd, topkBwd, Storage),
		openclImpl(moe.FusedScoreForMoEAuxLossFwd, scoreFwd, Storage),
		openclImpl(moe.FusedScoreForMoEAuxLossBwd, scoreBwd, Storage),
		openclImpl(moe.FusedMoEAuxLossFwd, auxLossFwd, Storage),
		openclImpl(moe.FusedMoEAuxLossBwd, auxLossBwd, Storage),
	}
}

// permuteFwd ranks the pairs of token and expert and copies rows to their ranks.
func permuteFwd(e *opregistry.Exec, a moe.MoEPermuteFwdArgs) error {
	c := begin(e)
	x, y := c.rows("input", a.Input), c.rows("output", a.Output)
	c.numbers("indices", a.Indices, tensor.I32)
	c.numbers("row_id_map", a.RowIDMap, tensor.I32)
	n := a.Indices.NumElements()
	if n > maxPairs {
		c.decline("%d pairs of token and expert, this impl serves up to %d", n, maxPairs)
	}
	if c.Err != nil || n == 0 {
		return c.Err
	}
	types, topk := typeList{a.Input.DType()}, a.Indices.Shape()[1]
	l := c.kernel(permuteProgram, "place", types, 0).vec(a.Indices, a.RowIDMap)
	if err := l.u32(x.Rows, topk, y.Rows).alone(n).Run(); err != nil {
		return err
	}
	return c.kernel(permuteProgram, "permute", types, 0).mat(x).vec(a.RowIDMap).mat(y).groupRows(x.Rows, x.Cols).u32(topk).Run()
}

func unpermute(e *opregistry.Exec, a moe.MoEUnpermuteArgs) error {
	c := begin(e)
	x, y, flags := c.rows("input", a.Input), c.rows("output", a.Output), macroFlags(0)
	c.numbers("row_id_map", a.RowIDMap, tensor.I32)
	var prob rowView
	if a.Prob != nil {
		prob, flags = c.rows("prob", a.Prob), withProb
	}
	if c.Err != nil || y.Rows == 0 {
		return c.Err
	}
	l := c.kernel(permuteProgram, "unpermute", typeList{a.Input.DType()}, flags).mat(x).vec(a.RowIDMap).mat(y)
	if a.Prob != nil {
		l.mat(prob)
	}
	return l.groupRows(y.Rows, y.Cols).u32(a.RowIDMap.NumElements()/y.Rows, x.Rows).Run()
}

func unpermuteBwd(e *opregistry.Exec, a moe.MoEUnpermuteBwdArgs) error {
	c := begin(e)
	dy, x, dx, flags := c.rows("input_bwd", a.InputBwd), c.rows("input_fwd", a.InputFwd), c.rows("act_grad", a.ActGrad), macroFlags(0)
	c.numbers("row_id_map", a.RowIDMap, tensor.I32)
	var prob, dprob rowView
	if a.Prob != nil {
		prob, dprob, flags = c.rows("prob", a.Prob), c.rows("prob_grad", a.ProbGrad), withProb
	}
	if c.Err != nil {
		return c.Err
	}
	types := typeList{a.InputBwd.DType()}
	if err := c.each(permuteProgram, "clear", types, flags, dx.Rows, dx.Cols, dx).Run(); err != nil || dy.Rows == 0 {
		return err
	}
	l := c.kernel(permuteProgram, "unpermute_bwd", types, flags).mat(dy, x).vec(a.RowIDMap).mat(dx)
	if a.Prob != nil {
		l.mat(prob, dprob)
	}
	return l.groupRows(dy.Rows, dy.Cols).u32(a.RowIDMap.NumElements()/dy.Rows, dx.Rows).Run()
}
