package opbench

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// The number of experts of the cases of a mixture, and how many experts a token has.
const (
	experts = 8
	topk    = 2
)

// dropped is the dropout probability of the cases.
const dropped = 0.1

// familyCases returns the cases of the ops that models other than Llama have.
func familyCases() map[string]builder {
	return map[string]builder{
		norm.LayerNormFwd.Name():   first((*Maker).layerNorm),
		norm.LayerNormBwd.Name():   second((*Maker).layerNorm),
		dropout.DropoutFwd.Name():  first((*Maker).dropout),
		dropout.DropoutBwd.Name():  second((*Maker).dropout),
		moe.MoEPermuteFwd.Name():   first((*Maker).permute),
		moe.MoEPermuteBwd.Name():   second((*Maker).permute),
		moe.MoEUnpermuteFwd.Name(): first((*Maker).unpermute),
		moe.MoEUnpermuteBwd.Name(): second((*Maker).unpermute),
	}
}

// first and second are builders of one of two cases.
func first(build func(m *Maker, shape string, rows, cols int) (fwd, bwd Case, err error)) builder {
	return func(m *Maker, shape string, rows, cols int) (Case, error) {
		fwd, _, err := build(m, shape, rows, cols)
		return fwd, err
	}
}

func second(build func(m *Maker, shape string, rows, cols int) (fwd, bwd Case, err error)) builder {
	return func(m *Maker, shape string, rows, cols int) (Case, error) {
		_, bwd, err := build(m, shape, rows, cols)
		return bwd, err
	}
}

// pair returns the cases of a forward op and of one that reads its saved state.
func pair[A, B any](m *Maker, shape string, fwdOp *opregistry.Op[A], f A, bwdOp *opregistry.Op[B], b B) (fwd, bwd Case, err error) {
	if fwd, err = NewCase(m, fwdOp, shape, f); err != nil {
		return fwd, bwd, err
	}
	bwd, err = NewCase(m, bwdOp, shape, b)
	bwd.forward = &fwd
	return fwd, bwd, err
}

func (m *Maker) layerNorm(shape string, rows, cols int) (fwd, bwd Case, err error) {
	f := norm.LayerNormFwdArgs{
		Input: m.Random(rows, cols), Weight: m.Random(cols), Bias: m.Random(cols), Output: m.Fresh(m.dtype, rows, cols),
		Mu: m.Fresh(tensor.F32, rows), RSigma: m.Fresh(tensor.F32, rows), Eps: 1e-5, Saved: new(opregistry.Saved),
	}
	return pair(m, shape, norm.LayerNormFwd, f, norm.LayerNormBwd, norm.LayerNormBwdArgs{
		DZ: m.Random(rows, cols), X: f.Input, Mu: f.Mu, RSigma: f.RSigma, Gamma: f.Weight, DX: m.Fresh(m.dtype, rows, cols),
		DGamma: m.Fresh(m.dtype, cols), DBeta: m.Fresh(m.dtype, cols), Saved: f.Saved,
	})
}

func (m *Maker) dropout(shape string, rows, cols int) (fwd, bwd Case, err error) {
	f := dropout.DropoutFwdArgs{
		Input: m.Random(rows, cols), Out: m.Fresh(m.dtype, rows, cols), Mask: m.Fresh(tensor.U8, (rows*cols+7)/8),
		DropoutProbability: dropped, Seed: 1, Saved: new(opregistry.Saved),
	}
	return pair(m, shape, dropout.DropoutFwd, f, dropout.DropoutBwd, dropout.DropoutBwdArgs{
		GradOutput: m.Random(rows, cols), Mask: f.Mask, GradInput: m.Fresh(m.dtype, rows, cols), DropoutProbability: dropped, Saved: f.Saved,
	})
}

// permute returns the cases that copy the rows of tokens to their experts and the gradients back.
func (m *Maker) permute(shape string, rows, cols int) (fwd, bwd Case, err error) {
	f := moe.MoEPermuteFwdArgs{
		Input: m.Random(rows, cols), Indices: m.Indexes(experts, rows, topk), Output: m.Fresh(m.dtype, topk*rows, cols),
		RowIDMap: m.Fresh(tensor.I32, topk*rows), Saved: new(opregistry.Saved),
	}
	return pair(m, shape, moe.MoEPermuteFwd, f, moe.MoEPermuteBwd, moe.MoEUnpermuteArgs{
		Input: m.Random(topk*rows, cols), RowIDMap: f.RowIDMap, Output: m.Fresh(m.dtype, rows, cols), Saved: f.Saved,
	})
}

// unpermute returns the cases that compute the weighted sum of the experts' results for each token,
// after a permutation.
func (m *Maker) unpermute(shape string, rows, cols int) (fwd, bwd Case, err error) {
	f := moe.MoEPermuteFwdArgs{
		Input: m.Random(rows, cols), Indices: m.Indexes(experts, rows, topk), Output: m.Fresh(m.dtype, topk*rows, cols),
		RowIDMap: m.Fresh(tensor.I32, topk*rows), Saved: new(opregistry.Saved),
	}
	prob := m.Positive(rows, topk)
	permuted, fwd, err := pair(m, shape, moe.MoEPermuteFwd, f, moe.MoEUnpermuteFwd, moe.MoEUnpermuteArgs{
		Input: f.Output, RowIDMap: f.RowIDMap, Prob: prob, Output: m.Fresh(m.dtype, rows, cols), Saved: f.Saved,
	})
	if err != nil {
		return fwd, bwd, err
	}
	bwd, err = NewCase(m, moe.MoEUnpermuteBwd, shape, moe.MoEUnpermuteBwdArgs{
		InputBwd: m.Random(rows, cols), InputFwd: f.Output, RowIDMap: f.RowIDMap, Prob: prob,
		ActGrad: m.Fresh(m.dtype, topk*rows, cols), ProbGrad: m.Fresh(tensor.F32, rows, topk), Saved: f.Saved,
	})
	bwd.forward = &permuted
	return fwd, bwd, err
}
