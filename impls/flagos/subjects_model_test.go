package flagos_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func buildLayerNormFwd(m *maker) norm.LayerNormFwdArgs {
	rows, cols := m.size(9, 700), m.size(70, 320)
	x := m.fill(m.out(rows, cols))
	a := norm.LayerNormFwdArgs{
		Input: x, Weight: m.fill(m.mixed(cols)), Output: x, Mu: m.dense(tensor.F32, rows), RSigma: m.dense(tensor.F32, rows),
		Eps: 1e-5, ZeroCenteredGamma: m.coin(), Saved: &opregistry.Saved{},
	}
	if m.coin() {
		a.Output = m.out(rows, cols)
	}
	if m.coin() {
		a.Bias = m.fill(m.mixed(cols))
	}
	return a
}

func buildLayerNormBwd(m *maker) norm.LayerNormBwdArgs {
	rows, cols := m.size(9, 700), m.size(70, 320)
	dz := m.fill(m.out(rows, cols))
	a := norm.LayerNormBwdArgs{
		DZ: dz, X: m.fill(m.out(rows, cols)), Mu: m.fill(m.dense(tensor.F32, rows)), RSigma: m.fill(m.dense(tensor.F32, rows)),
		Gamma: m.fill(m.mixed(cols)), DX: dz, DGamma: m.mixed(cols),
		ZeroCenteredGamma: m.coin(), Saved: &opregistry.Saved{},
	}
	if m.coin() {
		a.DX = m.out(rows, cols)
	}
	if m.coin() {
		a.DBeta = m.mixed(cols)
	}
	return a
}

func buildDropoutFwd(m *maker) dropout.DropoutFwdArgs {
	rows, cols := m.size(9, 300), m.size(300, 300)
	x := m.fill(m.stored(rows, cols))
	a := dropout.DropoutFwdArgs{
		Input: x, Out: x, Mask: m.dense(tensor.U8, (rows*cols+7)/8), DropoutProbability: float32(m.rng.IntN(10)) / 10,
		Seed: m.rng.Uint64(), Offset: m.rng.Uint64(), Saved: &opregistry.Saved{},
	}
	if m.coin() {
		a.Out = m.stored(rows, cols)
	}
	return a
}

func buildDropoutBwd(m *maker) dropout.DropoutBwdArgs {
	f := buildDropoutFwd(m)
	bits := make([]float64, f.Mask.NumElements())
	for i := range bits {
		bits[i] = float64(m.rng.IntN(256))
	}
	return dropout.DropoutBwdArgs{
		GradOutput: f.Input, GradInput: f.Out, Mask: set(m.t, f.Mask, bits...), DropoutProbability: f.DropoutProbability, Saved: f.Saved,
	}
}

// buildGroupedGemm makes the three products of a linear layer of several experts,
// some of which have no rows.
func buildGroupedGemm(m *maker) gemm.TEGeneralGroupedGemmArgs {
	groups, in, out := 1+m.rng.IntN(4), m.size(40, 80), m.size(40, 80)
	a := gemm.TEGeneralGroupedGemmArgs{}
	kind, bias, total := m.rng.IntN(3), m.coin(), 0
	for range groups {
		rows := 0
		if m.rng.IntN(4) > 0 {
			rows = m.size(9, 200)
		}
		total += rows
		x, dy, w := m.fill(m.out(rows, in)), m.fill(m.out(rows, out)), m.fill(m.out(out, in))
		switch kind {
		case 0:
			a.A, a.B, a.TransA = append(a.A, w), append(a.B, x), true
			if bias {
				a.Bias = append(a.Bias, m.fill(m.mixed(out)))
			}
		case 1:
			a.A, a.B, a.Grad = append(a.A, w), append(a.B, dy), true
			if bias {
				a.Bias = append(a.Bias, m.mixed(out))
			}
		case 2:
			a.A, a.B, a.D, a.TransB, a.Grad, a.Accumulate = append(a.A, x), append(a.B, dy), append(a.D, m.fill(m.out(out, in))), true, true, bias
		}
	}
	if kind < 2 {
		cols := []int{out, in}[kind]
		a.SingleOutput, a.D = true, []*tensor.Tensor{m.out(total, cols)}
	}
	return a
}

func buildPermute(m *maker) moe.MoEPermuteFwdArgs {
	tokens, topk, h, experts := m.size(20, 500), m.size(4, 4), m.size(70, 200), m.size(8, 16)
	indices := make([]float64, tokens*topk)
	for i := range indices {
		indices[i] = float64(m.rng.IntN(experts))
	}
	rows := tokens * topk
	if m.coin() {
		rows -= m.rng.IntN(rows)
	}
	return moe.MoEPermuteFwdArgs{
		Input: m.fill(m.out(tokens, h)), Indices: set(m.t, m.dense(tensor.I32, tokens, topk), indices...),
		Output: m.out(rows, h), RowIDMap: m.dense(tensor.I32, tokens*topk), Saved: &opregistry.Saved{},
	}
}

// rowIDMap makes a map of distinct rows, some of which are left out.
func (m *maker) rowIDMap(tokens, topk int) *tensor.Tensor {
	values := make([]float64, tokens*topk)
	for i, row := range m.rng.Perm(len(values)) {
		values[i] = float64(row)
		if m.rng.IntN(8) == 0 {
			values[i] = -1
		}
	}
	return set(m.t, m.dense(tensor.I32, len(values)), values...)
}

func buildUnpermute(m *maker) moe.MoEUnpermuteArgs {
	tokens, topk, h := m.size(20, 500), m.size(4, 4), m.size(70, 200)
	a := moe.MoEUnpermuteArgs{
		Input: m.fill(m.out(tokens*topk, h)), RowIDMap: m.rowIDMap(tokens, topk), Output: m.out(tokens, h), Saved: &opregistry.Saved{},
	}
	if m.coin() {
		a.Prob = m.fill(m.dense(tensor.F32, tokens, topk))
	}
	return a
}

func buildUnpermuteBwd(m *maker) moe.MoEUnpermuteBwdArgs {
	f := buildUnpermute(m)
	a := moe.MoEUnpermuteBwdArgs{
		InputBwd: m.fill(f.Output), InputFwd: f.Input, RowIDMap: f.RowIDMap, Prob: f.Prob,
		ActGrad: m.out(f.Input.Shape()...), Saved: &opregistry.Saved{},
	}
	if a.Prob != nil {
		a.ProbGrad = m.dense(tensor.F32, a.Prob.Shape()...)
	}
	return a
}

func buildDeltaNet(m *maker) attention.GatedDeltaNetForwardArgs {
	b, seq, h, dk, dv := m.size(2, 3), m.size(12, 20), m.size(3, 4), m.size(20, 32), m.size(40, 64)
	a := attention.GatedDeltaNetForwardArgs{
		Query: m.fill(m.stored(b, seq, h, dk)), Key: m.fill(m.stored(b, seq, h, dk)), Value: m.fill(m.stored(b, seq, h, dv)),
		G: m.fill(m.dense(tensor.F32, b, seq, h)), Beta: m.fill(m.stored(b, seq, h)), UseQKL2Norm: true, Output: m.out(b, seq, h, dv),
	}
	for _, x := range []struct {
		t    *tensor.Tensor
		sign float64
	}{{a.G, -1}, {a.Beta, 0.3}} { // a state that forgets
		values := x.t.Float64s()
		for i, v := range values {
			values[i] = x.sign * max(v, -v)
		}
		set(m.t, x.t, values...)
	}
	if m.coin() {
		a.InitialState, a.FinalState = m.fill(m.out(b, h, dk, dv)), m.dense(tensor.F32, b, h, dk, dv)
	}
	return a
}

func TestRandomDeltaNetsEqualTheReference(t *testing.T) {
	compare(t, attention.GatedDeltaNetForward, made(buildDeltaNet))
}
