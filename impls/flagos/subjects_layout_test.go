package flagos_test

import (
	"testing"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func layoutSubjects() []subject {
	exact := tensortest.Tolerance{}
	return []subject{
		subjectOf[rope.FusedQKVRopeArgs]{rope.FusedQKVRopeForward, buildProjection, elementwise},
		subjectOf[rope.FusedQKVRopeArgs]{rope.FusedQKVRopeBackward, buildProjection, elementwise},
		subjectOf[optim.MultiTensorAdamArgs]{optim.MultiTensorAdamFP8, buildAdamFP8, elementwise},
		subjectOf[gemm.GroupedGemmArgs]{gemm.TEGeneralGroupedGemmForGroupedTensor, buildGroupedTensor, summed},
		subjectOf[gemm.GroupedGemmArgs]{gemm.TEGeneralGroupedGemmForDiscreteIn, buildDiscreteIn, summed},
		subjectOf[gemm.GroupedGemmArgs]{gemm.TEGeneralGroupedGemmForDiscreteOut, buildDiscreteOut, summed},
		subjectOf[attention.FAPrepareFwdArgs]{attention.FAPrepareFwd, func(m *maker) attention.FAPrepareFwdArgs {
			s, b, n, h := m.size(12, 60), m.size(4, 4), m.size(4, 8), m.size(20, 32)
			return attention.FAPrepareFwdArgs{QKVI: m.fill(m.out(s, b, n, 3*h)), Output: m.out(3, b, s, n, h)}
		}, exact},
		subjectOf[attention.FAPrepareBwdArgs]{attention.FAPrepareBwd, func(m *maker) attention.FAPrepareBwdArgs {
			s, b, n, h := m.size(12, 60), m.size(4, 4), m.size(4, 8), m.size(20, 32)
			part := func() *tensor.Tensor { return m.fill(m.out(b, s, n, h)) }
			return attention.FAPrepareBwdArgs{Q: part(), K: part(), V: part(), Output: m.out(s, b, n, 3*h)}
		}, exact},
		subjectOf[attention.ConvertTHDArgs]{attention.ConvertTHDToBSHD, func(m *maker) attention.ConvertTHDArgs {
			p := m.packed()
			return attention.ConvertTHDArgs{Tensor: m.fill(m.out(p.tokens, p.heads, p.d)), CuSeqlens: p.ends, Output: m.out(p.batch, p.longest, p.heads, p.d)}
		}, exact},
		subjectOf[attention.ConvertTHDArgs]{attention.ConvertBSHDToTHD, func(m *maker) attention.ConvertTHDArgs {
			p := m.packed()
			return attention.ConvertTHDArgs{Tensor: m.fill(m.out(p.batch, p.longest, p.heads, p.d)), CuSeqlens: p.ends, Output: m.out(p.tokens, p.heads, p.d)}
		}, exact},
		subjectOf[attention.THDReadHalfTensorArgs]{attention.THDReadHalfTensor, func(m *maker) attention.THDReadHalfTensorArgs {
			p := m.packed()
			return attention.THDReadHalfTensorArgs{
				Tensor: m.fill(m.out(2, p.tokens, p.heads, p.d)), CuSeqlens: p.ends, HalfIdx: m.rng.IntN(2), Half: m.out(2, p.tokens/2, p.heads, p.d),
			}
		}, exact},
		subjectOf[attention.THDReadSecondHalfLSEArgs]{attention.THDReadSecondHalfLSE, func(m *maker) attention.THDReadSecondHalfLSEArgs {
			p, packed := m.packed(), m.coin()
			return attention.THDReadSecondHalfLSEArgs{LSE: p.lse(m, packed, false), CuSeqlens: p.ends, LSEPacked: packed, HalfLSE: p.lse(m, packed, true)}
		}, exact},
		subjectOf[attention.THDSecondHalfLSECorrectionArgs]{attention.THDSecondHalfLSECorrection, func(m *maker) attention.THDSecondHalfLSECorrectionArgs {
			p, packed := m.packed(), m.coin()
			return attention.THDSecondHalfLSECorrectionArgs{LSE: p.lse(m, packed, false), LSEPerStep: p.lse(m, packed, true), CuSeqlens: p.ends, LSEPacked: packed}
		}, tensortest.Tolerance{Abs: 1e-7, ULP: 1}},
		subjectOf[attention.THDOutCorrectionArgs]{attention.THDOutCorrection, func(m *maker) attention.THDOutCorrectionArgs {
			p, packed, half := m.packed(), m.coin(), m.coin()
			tokens := p.tokens
			if half {
				tokens /= 2
			}
			return attention.THDOutCorrectionArgs{
				Out: m.fill(m.out(p.tokens, p.heads, p.d)), OutPerStep: m.fill(m.out(tokens, p.heads, p.d)), LSE: p.lse(m, packed, false),
				LSEPerStep: p.lse(m, packed, half), CuSeqlens: p.ends, OnlySecondHalf: half, LSEPacked: packed,
			}
		}, elementwise},
		subjectOf[attention.THDGradCorrectionArgs]{attention.THDGradCorrection, func(m *maker) attention.THDGradCorrectionArgs {
			p := m.packed()
			a := attention.THDGradCorrectionArgs{CuSeqlens: p.ends, FirstHalf: attention.Correction(1 + m.rng.IntN(3)), SecondHalf: attention.Correction(1 + m.rng.IntN(3))}
			if a.FirstHalf == a.SecondHalf {
				a.SecondHalf = a.SecondHalf%3 + 1
			}
			tokens := p.tokens
			if a.FirstHalf == attention.NoCorrection || a.SecondHalf == attention.NoCorrection {
				tokens /= 2
			}
			a.Grad, a.GradPerStep = m.fill(m.out(2, p.tokens, p.heads, p.d)), m.fill(m.out(2, tokens, p.heads, p.d))
			return a
		}, tensortest.Tolerance{ULP: 1}},
	}
}

func TestRandomLayoutsEqualTheReference(t *testing.T) {
	compare(t, rope.FusedQKVRopeForward, made(buildProjection))
	compare(t, rope.FusedQKVRopeBackward, made(buildProjection))
	compare(t, optim.MultiTensorAdamFP8, made(buildAdamFP8))
	compare(t, gemm.TEGeneralGroupedGemmForGroupedTensor, made(buildGroupedTensor))
	compare(t, gemm.TEGeneralGroupedGemmForDiscreteIn, made(buildDiscreteIn))
	compare(t, gemm.TEGeneralGroupedGemmForDiscreteOut, made(buildDiscreteOut))
}

// made lets compare use the calls of a subject.
func made[A any](build func(m *maker) A) func(*random) A {
	return func(r *random) A {
		m := newMakerOf(r.t, r.dtype, r.Uint64(), false)
		m.short = true
		return build(m)
	}
}

// buildProjection makes a fused projection, whose parts are also those of the gradient.
func buildProjection(m *maker) rope.FusedQKVRopeArgs {
	seq, batch, groups, members := 2*m.size(5, 60), m.size(2, 4), m.size(4, 4), m.rng.IntN(5)
	k, v := 2*m.size(12, 16), m.rng.IntN(12)
	a := rope.FusedQKVRopeArgs{
		QKVSplitArgList: []int{members * k, k, v}, QKVFormat: attention.QKVFormat(1 + m.rng.IntN(2)), Interleaved: m.coin(), CPSize: m.rng.IntN(3),
	}
	positions := seq * max(a.CPSize, 1)
	if a.CPSize > 1 {
		a.CPRank = m.rng.IntN(a.CPSize)
	}
	if m.coin() {
		starts := make([]float64, batch)
		for b := range starts {
			starts[b] = float64(m.rng.IntN(3))
		}
		a.StartPositions = set(m.t, m.dense(tensor.I32, batch), starts...)
		positions += 2
	}
	axes := func(heads, d int) []int {
		if a.QKVFormat == attention.BSHD {
			return []int{batch, seq, heads, d}
		}
		return []int{seq, batch, heads, d}
	}
	a.QKV = m.fill(m.out(axes(groups, (members+1)*k+v)...))
	a.Q, a.K, a.V = m.fill(m.out(axes(groups*members, k)...)), m.fill(m.out(axes(groups, k)...)), m.fill(m.out(axes(groups, v)...))
	a.QFreqs = m.fill(m.dense(tensor.F32, positions, 1, 1, 2*(1+m.rng.IntN(k/2))))
	if m.coin() {
		repeatHalves(m, a.QFreqs)
	}
	if a.KFreqs = a.QFreqs; m.coin() {
		a.KFreqs = m.fill(m.dense(tensor.F32, positions, 1, 1, 2*(1+m.rng.IntN(k/2))))
	}
	return a
}

// buildAdamFP8 makes a call whose list of weights is in fp8, with a scale for each tensor.
func buildAdamFP8(m *maker) optim.MultiTensorAdamArgs {
	a := buildAdam(m)
	lists := m.lists(masters + 1)
	m.squared(lists[3])
	a.TensorLists = append(lists, make([][]*tensor.Tensor, 3)...)
	d := []tensor.DType{tensor.F8E4M3, tensor.F8E5M2}[m.rng.IntN(2)]
	for i, p := range lists[1] {
		lists[1][i] = m.dense(d, p.Shape()...)
		for l, value := range []float64{1 + 40*m.rng.Float64(), 3 * m.rng.Float64(), 0} {
			a.TensorLists[masters+1+l] = append(a.TensorLists[masters+1+l], m.number(value))
		}
	}
	return a
}

// experts are the sizes of grouped products.
type experts struct {
	rows    []int
	lengths *tensor.Tensor
	total   int
	in, out int
}

func (m *maker) experts() experts {
	x := experts{in: m.size(40, 80), out: m.size(40, 80)}
	var lengths []float64
	for range 1 + m.rng.IntN(4) {
		n := m.rng.IntN(3) * m.size(9, 100)
		x.rows, lengths, x.total = append(x.rows, n), append(lengths, float64(n)), x.total+n
	}
	x.lengths = set(m.t, m.dense([]tensor.DType{tensor.I32, tensor.I64}[m.rng.IntN(2)], len(lengths)), lengths...)
	return x
}

// rowsOf makes the rows of all experts.
func (x *experts) rowsOf(m *maker, cols int) gemm.GroupedTensor {
	return gemm.GroupedTensor{Data: m.fill(m.out(x.total, cols)), FirstDims: x.lengths}
}

// each makes a matrix for each expert.
func (x *experts) each(m *maker, rows, cols int) gemm.GroupedTensor {
	var g gemm.GroupedTensor
	for range x.rows {
		g.List = append(g.List, m.fill(m.out(rows, cols)))
	}
	return g
}

// factors gives a call alpha, beta and, if it may have one, a bias of so many columns.
func (x *experts) factors(m *maker, a *gemm.GroupedGemmArgs, bias int) {
	n := len(x.rows)
	if m.coin() {
		a.Alpha = m.fill(m.dense(tensor.F32, n))
	}
	if m.coin() {
		a.Beta = m.fill(m.dense(tensor.F32, n))
		a.Beta.Set(0, m.rng.IntN(n))
	}
	if bias > 0 && m.coin() {
		a.Bias = m.fill(m.mixed(n, bias))
	}
}

func buildGroupedTensor(m *maker) gemm.GroupedGemmArgs {
	x := m.experts()
	n := len(x.rows)
	a := gemm.GroupedGemmArgs{
		A: gemm.GroupedTensor{Data: m.fill(m.out(n*x.out, x.in)), NumTensors: n}, TransA: true, B: x.rowsOf(m, x.in), D: x.rowsOf(m, x.out),
	}
	x.factors(m, &a, x.out)
	return a
}

func buildDiscreteIn(m *maker) gemm.GroupedGemmArgs {
	x := m.experts()
	a := gemm.GroupedGemmArgs{A: x.each(m, x.in, x.out), B: x.rowsOf(m, x.in), D: x.rowsOf(m, x.out)}
	x.factors(m, &a, x.out)
	return a
}

func buildDiscreteOut(m *maker) gemm.GroupedGemmArgs {
	x := m.experts()
	a := gemm.GroupedGemmArgs{A: x.rowsOf(m, x.in), B: x.rowsOf(m, x.out), TransB: true, D: x.each(m, x.out, x.in)}
	x.factors(m, &a, 0)
	return a
}

// packed are packed sequences of even length, followed by some tokens.
type packed struct {
	ends                             *tensor.Tensor
	batch, tokens, longest, heads, d int
}

func (m *maker) packed() packed {
	p := packed{batch: 1 + m.rng.IntN(4), heads: m.size(4, 8), d: m.size(20, 32)}
	ends := make([]float64, p.batch+1)
	for b := range p.batch {
		n := 2 * m.rng.IntN(m.size(12, 60)+1)
		ends[b+1], p.longest = ends[b]+float64(n), max(p.longest, n)
	}
	p.tokens = int(ends[p.batch]) + 2*m.rng.IntN(3)
	p.ends = set(m.t, m.dense(tensor.I32, p.batch+1), ends...)
	return p
}

// lse makes log-sum-exps of all tokens or of half of them.
func (p *packed) lse(m *maker, packed, half bool) *tensor.Tensor {
	axes := []int{p.batch, p.heads, p.longest}
	if packed {
		axes = []int{p.heads, p.tokens}
	}
	if half {
		axes[len(axes)-1] /= 2
	}
	return m.fill(m.dense(tensor.F32, axes...))
}
