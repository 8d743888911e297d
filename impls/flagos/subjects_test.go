package flagos_test

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// The tolerances: elementwise f32 arithmetic has an error of a few roundings, and sums of up to a
// few hundred terms of magnitude 1 have a few more.
var (
	elementwise = tensortest.Tolerance{Abs: 1e-6, Rel: 2e-6}

	// roundedBetween is for products of what is rounded to narrow storage before; the conformance
	// kit has a bound for f32.
	roundedBetween = tensortest.Tolerance{Abs: 2e-2, Rel: 1e-2}
	summed         = tensortest.Tolerance{Abs: 2e-5, Rel: 1e-5}
)

func subjects() []subject {
	return slices.Concat(activationSubjects(), softmaxSubjects(), listSubjects(), quantSubjects(), routerSubjects(), layoutSubjects(), []subject{
		subjectOf[norm.RMSNormFwdArgs]{norm.RMSNormFwd, buildNormFwd, elementwise},
		subjectOf[norm.RMSNormBwdArgs]{norm.RMSNormBwd, buildNormBwd, summed},
		subjectOf[norm.RMSNormBwdAddArgs]{norm.RMSNormBwdAdd, buildNormBwdAdd, summed},
		subjectOf[norm.LayerNormFwdArgs]{norm.LayerNormFwd, buildLayerNormFwd, elementwise},
		subjectOf[norm.LayerNormBwdArgs]{norm.LayerNormBwd, buildLayerNormBwd, summed},
		subjectOf[dropout.DropoutFwdArgs]{dropout.DropoutFwd, buildDropoutFwd, tensortest.Tolerance{ULP: 1}},
		subjectOf[dropout.DropoutBwdArgs]{dropout.DropoutBwd, buildDropoutBwd, tensortest.Tolerance{ULP: 1}},
		subjectOf[gemm.TEGeneralGroupedGemmArgs]{gemm.TEGeneralGroupedGemm, buildGroupedGemm, summed},
		subjectOf[moe.MoEPermuteFwdArgs]{moe.MoEPermuteFwd, buildPermute, tensortest.Tolerance{}},
		subjectOf[moe.MoEUnpermuteArgs]{moe.MoEPermuteBwd, buildUnpermute, summed},
		subjectOf[moe.MoEUnpermuteArgs]{moe.MoEUnpermuteFwd, buildUnpermute, summed},
		subjectOf[moe.MoEUnpermuteBwdArgs]{moe.MoEUnpermuteBwd, buildUnpermuteBwd, summed},
		subjectOf[attention.GatedDeltaNetForwardArgs]{attention.GatedDeltaNetForward, buildDeltaNet, summed},
		subjectOf[norm.ResidualAddArgs]{norm.ResidualAdd, buildSum, tensortest.Tolerance{}},
		subjectOf[rope.FusedRopeArgs]{rope.FusedRopeForward, buildRope, elementwise},
		subjectOf[rope.FusedRopeArgs]{rope.FusedRopeBackward, buildRope, elementwise},
		subjectOf[embedding.EmbeddingFwdArgs]{embedding.EmbeddingFwd, buildEmbeddingFwd, tensortest.Tolerance{}},
		subjectOf[embedding.EmbeddingBwdArgs]{embedding.EmbeddingBwd, buildEmbeddingBwd, summed},
		subjectOf[loss.CrossEntropyFwdArgs]{loss.CrossEntropyFwd, buildEntropyFwd, elementwise},
		subjectOf[loss.CrossEntropyBwdArgs]{loss.CrossEntropyBwd, buildEntropyBwd, elementwise},
		subjectOf[loss.LinearCrossEntropyFwdArgs]{loss.LinearCrossEntropyFwd, buildLinearFwd, roundedBetween},
		subjectOf[loss.LinearCrossEntropyBwdArgs]{loss.LinearCrossEntropyBwd, buildLinearBwd, roundedBetween},
	})
}

func buildNormFwd(m *maker) norm.RMSNormFwdArgs {
	rows, cols := m.size(9, 700), m.size(70, 320)
	x := m.fill(m.out(rows, cols))
	a := norm.RMSNormFwdArgs{
		Input: x, Weight: m.fill(m.mixed(cols)), Output: x, RSigma: m.dense(tensor.F32, rows),
		Eps: 1e-5, ZeroCenteredGamma: m.coin(), Saved: &opregistry.Saved{},
	}
	if m.coin() {
		a.Output = m.out(rows, cols)
	}
	return a
}

func buildNormBwd(m *maker) norm.RMSNormBwdArgs {
	rows, cols := m.size(9, 700), m.size(70, 320)
	dz := m.fill(m.out(rows, cols))
	a := norm.RMSNormBwdArgs{
		DZ: dz, X: m.fill(m.out(rows, cols)), RSigma: m.fill(m.dense(tensor.F32, rows)),
		Gamma: m.fill(m.mixed(cols)), DX: dz, DGamma: m.mixed(cols),
		ZeroCenteredGamma: m.coin(), Saved: &opregistry.Saved{},
	}
	if m.coin() {
		a.DX = m.out(rows, cols)
	}
	return a
}

func buildNormBwdAdd(m *maker) norm.RMSNormBwdAddArgs {
	b := buildNormBwd(m)
	a := norm.RMSNormBwdAddArgs{
		DZ: b.DZ, X: b.X, Add: m.fill(m.out(b.X.Shape()...)), RSigma: b.RSigma, Gamma: b.Gamma, DX: b.DX, DGamma: b.DGamma,
		ZeroCenteredGamma: b.ZeroCenteredGamma,
	}
	switch m.rng.IntN(4) {
	case 0:
		a.DX = a.Add
	case 1:
		a.Add = a.DZ
	}
	return a
}

func buildSum(m *maker) norm.ResidualAddArgs {
	rows, cols := m.size(9, 600), m.size(70, 300)
	a := norm.ResidualAddArgs{A: m.fill(m.out(rows, cols)), B: m.fill(m.out(rows, cols)), Output: m.out(rows, cols)}
	switch m.rng.IntN(4) {
	case 0:
		a.Output = a.A
	case 1:
		a.Output = a.B
	case 2:
		a.A = m.fill(m.stored(rows, cols))
		a.B, a.Output = m.fill(m.stored(rows, cols)), m.stored(rows, cols)
	}
	return a
}

func buildRope(m *maker) rope.FusedRopeArgs {
	seq, batch, heads := 2*m.size(12, 60), m.size(3, 4), m.size(4, 8)
	d2 := 2 * m.size(20, 20)
	d := d2 + m.rng.IntN(2)*m.rng.IntN(9)
	a := rope.FusedRopeArgs{QKVFormat: attention.QKVFormat(1 + m.rng.IntN(3)), Interleaved: m.coin()}
	shape := []int{seq, batch, heads, d}
	switch a.QKVFormat {
	case attention.BSHD:
		shape = []int{batch, seq, heads, d}
	case attention.THD:
		shape = []int{seq * batch, heads, d}
		ends := make([]float64, batch+1)
		for b := 1; b < batch; b++ {
			ends[b] = min(ends[b-1]+float64(2*m.rng.IntN(seq)), float64(seq*batch))
		}
		ends[batch] = float64(seq * batch)
		a.CuSeqlens = set(m.t, m.dense(tensor.I32, batch+1), ends...)
	}
	if m.coin() {
		a.CPSize = 1 + m.rng.IntN(3)
		a.CPRank = m.rng.IntN(a.CPSize)
		if a.CuSeqlens != nil {
			ends := a.CuSeqlens.Float64s()
			for b := range ends {
				ends[b] *= float64(a.CPSize)
			}
			set(m.t, a.CuSeqlens, ends...)
		}
	}
	positions := seq * batch * max(a.CPSize, 1)
	if m.coin() {
		starts := make([]float64, batch)
		for b := range starts {
			starts[b] = float64(m.rng.IntN(3))
		}
		a.StartPositions = set(m.t, m.dense(tensor.I32, batch), starts...)
		positions += 2
	}
	a.Freqs = m.fill(m.dense(tensor.F32, positions, 1, 1, d2))
	if m.coin() {
		repeatHalves(m, a.Freqs)
	}
	// The first heads of a wider buffer, as in a fused projection.
	wide := append(append([]int(nil), shape[:len(shape)-2]...), heads+2, d)
	view, err := m.fill(m.stored(wide...)).Slice(len(shape)-2, 0, heads)
	if err != nil {
		m.t.Fatal(err)
	}
	narrow := m.fill(m.stored(shape...))
	switch m.rng.IntN(4) {
	case 0:
		a.Input, a.Output = view, view
	case 1:
		a.Input, a.Output = narrow, view
	case 2:
		a.Input, a.Output = narrow, narrow
	default:
		a.Input, a.Output = view, narrow
	}
	return a
}

// repeatHalves makes the second half of each row of angles equal to the first.
func repeatHalves(m *maker, freqs *tensor.Tensor) {
	values, d2 := freqs.Float64s(), freqs.Shape().Cols()
	for at := 0; at < len(values); at += d2 {
		copy(values[at+d2/2:at+d2], values[at:at+d2/2])
	}
	set(m.t, freqs, values...)
}

func buildEmbeddingFwd(m *maker) embedding.EmbeddingFwdArgs {
	n, vocab, h := m.size(20, 500), m.size(30, 300), m.size(70, 200)
	return embedding.EmbeddingFwdArgs{Indices: m.indexes(n, vocab, 0), Weight: m.fill(m.out(vocab, h)), Output: m.out(n, h)}
}

func buildEmbeddingBwd(m *maker) embedding.EmbeddingBwdArgs {
	n, vocab, h := m.size(20, 500), m.size(30, 300), m.size(200, 200)
	a := embedding.EmbeddingBwdArgs{Indices: m.indexes(n, vocab, 0), Grad: m.fill(m.out(n, h)), DWeight: m.out(vocab, h), Accumulate: m.coin()}
	if a.Accumulate {
		m.fill(a.DWeight)
	}
	return a
}

const ignored = -100

// vocabulary is sometimes larger than the chunk of the exponentials.
func vocabulary(m *maker) int {
	if m.rng.IntN(6) == 0 {
		return 1000 + m.rng.IntN(1200)
	}
	return m.size(70, 300)
}

func buildEntropyFwd(m *maker) loss.CrossEntropyFwdArgs {
	n, vocab := m.size(20, 500), vocabulary(m)
	return loss.CrossEntropyFwdArgs{
		Logits: m.fill(m.out(n, vocab)), Targets: m.indexes(n, vocab, ignored), Losses: m.dense(tensor.F32, n),
		LSE: m.dense(tensor.F32, n), IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	}
}

func buildLinearFwd(m *maker) loss.LinearCrossEntropyFwdArgs {
	n, h, vocab := m.size(20, 100), m.size(20, 70), m.size(70, 300)
	a := loss.LinearCrossEntropyFwdArgs{
		Hidden: m.fill(m.out(n, h)), Weight: m.fill(m.out(vocab, h)), Targets: m.indexes(n, vocab, ignored),
		Losses: m.dense(tensor.F32, n), LSE: m.dense(tensor.F32, n), IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	}
	if m.coin() {
		a.DLosses, a.DHidden, a.DWeight = m.fill(m.dense(tensor.F32, n)), m.out(n, h), m.out(vocab, h)
	}
	return a
}

func buildLinearBwd(m *maker) loss.LinearCrossEntropyBwdArgs {
	n, h, vocab := m.size(20, 100), m.size(20, 70), m.size(70, 300)
	lse := m.dense(tensor.F32, n)
	for i := range n {
		lse.Set(40, i) // the exponentials are at most near 1
	}
	return loss.LinearCrossEntropyBwdArgs{
		Hidden: m.fill(m.out(n, h)), Weight: m.fill(m.out(vocab, h)), Targets: m.indexes(n, vocab, ignored),
		LSE: lse, DLosses: m.fill(m.dense(tensor.F32, n)), DHidden: m.out(n, h), DWeight: m.out(vocab, h),
		IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	}
}

func buildEntropyBwd(m *maker) loss.CrossEntropyBwdArgs {
	n, vocab := m.size(20, 500), vocabulary(m)
	logits := m.fill(m.out(n, vocab))
	a := loss.CrossEntropyBwdArgs{
		Logits: logits, Targets: m.indexes(n, vocab, ignored), LSE: m.fill(m.dense(tensor.F32, n)),
		DLosses: m.fill(m.dense(tensor.F32, n)), DLogits: logits, IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	}
	if m.coin() {
		a.DLogits = m.out(n, vocab)
	}
	return a
}
