package flagos_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func listSubjects() []subject {
	s := []subject{
		subjectOf[optim.MultiTensorAdamArgs]{optim.MultiTensorAdam, buildAdam, elementwise},
		remainders{subjectOf[optim.MultiTensorAdamArgs]{op: optim.MultiTensorAdamParamRemainder, build: buildAdamRemainder}},
		subjectOf[optim.MultiTensorSGDArgs]{optim.MultiTensorSGD, buildSGD, elementwise},
		subjectOf[optim.MultiTensorL2NormArgs]{optim.MultiTensorL2Norm, buildL2Norm, tensortest.Tolerance{ULP: 1}},
		subjectOf[optim.MultiTensorUnscaleL2NormArgs]{optim.MultiTensorUnscaleL2Norm, buildUnscaleL2Norm, tensortest.Tolerance{ULP: 1}},
		subjectOf[optim.MultiTensorScaleArgs]{optim.MultiTensorScale, buildScale, tensortest.Tolerance{ULP: 1}},
		subjectOf[optim.MultiTensorScaleTensorArgs]{optim.MultiTensorScaleTensor, buildScaleTensor, tensortest.Tolerance{ULP: 1}},
	}
	for lists, op := range map[int]*opregistry.Op[optim.MultiTensorAdamCapturableArgs]{
		4: optim.MultiTensorAdamCapturable, 5: optim.MultiTensorAdamCapturableMaster,
	} {
		build := func(m *maker) optim.MultiTensorAdamCapturableArgs { return buildAdamCapturable(m, lists) }
		s = append(s, subjectOf[optim.MultiTensorAdamCapturableArgs]{op, build, elementwise})
	}
	return s
}

func (m *maker) flag(values int) *tensor.Tensor {
	return set(m.t, m.dense(tensor.I32, 1), float64(m.rng.IntN(values)))
}

func (m *maker) number(v float64) *tensor.Tensor { return set(m.t, m.dense(tensor.F32, 1), v) }

// masters is the list that is always f32.
const masters = 4

// lists makes n lists of tensors; big ones are of more than one block.
func (m *maker) lists(n int) [][]*tensor.Tensor {
	out := make([][]*tensor.Tensor, n)
	for range m.rng.IntN(5) + 1 {
		size := m.rng.IntN(200)
		if m.big || !m.short && m.rng.IntN(30) == 0 {
			size = 1<<15 + m.rng.IntN(1<<15)
		}
		for l := range out {
			if l == masters {
				out[l] = append(out[l], m.fill(m.dense(tensor.F32, size)))
			} else {
				out[l] = append(out[l], m.fill(m.mixed(size)))
			}
		}
	}
	return out
}

func buildAdam(m *maker) optim.MultiTensorAdamArgs {
	a := optim.MultiTensorAdamArgs{
		NoopFlag: m.flag(2), TensorLists: m.lists(4 + m.rng.IntN(2)),
		LR: 0.01, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-6, Step: 1 + m.rng.IntN(100),
		Mode: optim.AdamMode(m.rng.IntN(2)), BiasCorrection: m.coin(), WeightDecay: 0.1 * float32(m.rng.IntN(2)),
	}
	m.squared(a.TensorLists[3])
	return a
}

func buildL2Norm(m *maker) optim.MultiTensorL2NormArgs {
	a := optim.MultiTensorL2NormArgs{NoopFlag: set(m.t, m.dense(tensor.I32, 1), 0), TensorLists: m.lists(1), Norm: m.dense(tensor.F32, 1)}
	if m.coin() {
		a.PerTensor = m.dense(tensor.F32, len(a.TensorLists[0]))
	}
	return a
}

func buildScale(m *maker) optim.MultiTensorScaleArgs {
	a := optim.MultiTensorScaleArgs{
		NoopFlag:    m.flag(2),
		TensorLists: m.lists(2), Scale: float32(m.rng.NormFloat64()),
	}
	if m.coin() {
		a.TensorLists[1] = a.TensorLists[0]
	}
	return a
}

// squared squares what a list holds.
func (m *maker) squared(list []*tensor.Tensor) {
	for _, x := range list {
		values := x.Float64s()
		for i := range values {
			values[i] *= values[i]
		}
		set(m.t, x, values...)
	}
}

// buildAdamRemainder takes the remainders from the list of masters.
func buildAdamRemainder(m *maker) optim.MultiTensorAdamArgs {
	a := buildAdam(m)
	a.TensorLists = append(a.TensorLists[:4:4], nil)
	for i, p := range a.TensorLists[1] {
		a.TensorLists[1][i] = m.fill(m.dense(tensor.BF16, p.Shape()...))
		rest := m.dense(tensor.I16, p.Shape()...)
		values := make([]float64, rest.NumElements())
		for j := range values {
			values[j] = float64(m.rng.IntN(1<<16) - 1<<15)
		}
		a.TensorLists[4] = append(a.TensorLists[4], set(m.t, rest, values...))
	}
	return a
}

// remainders is a subject whose weights can only be compared after they are assembled.
type remainders struct {
	subjectOf[optim.MultiTensorAdamArgs]
}

// differ requires the bits of a step with f32 master weights.
func (s remainders) differ(t *testing.T, d tensor.DType, seed uint64) {
	m := newMakerOf(t, d, seed, false)
	a := s.build(m)
	plain := a
	plain.TensorLists = make([][]*tensor.Tensor, 5)
	for l, list := range a.TensorLists[:4] {
		for _, x := range list {
			plain.TensorLists[l] = append(plain.TensorLists[l], set(t, m.dense(x.DType(), x.Shape()...), x.Float64s()...))
		}
	}
	for i := range a.TensorLists[4] {
		joined := joinedHalves(a, i)
		plain.TensorLists[4] = append(plain.TensorLists[4], set(t, m.dense(tensor.F32, len(joined)), joined...))
	}
	require.NoError(t, call(t, s.op, a))
	require.NoError(t, call(t, optim.MultiTensorAdam, plain))
	for i, master := range plain.TensorLists[4] {
		assert.Equal(t, master.Float64s(), joinedHalves(a, i), "weights of tensor %d of seed %d", i, seed)
		for _, l := range []int{2, 3} {
			assert.Equal(t, plain.TensorLists[l][i].Float64s(), a.TensorLists[l][i].Float64s(), "list %d of tensor %d of seed %d", l, i, seed)
		}
	}
	for _, check := range m.guards {
		check(t)
	}
}

// joinedHalves returns the weights of tensor i.
func joinedHalves(a optim.MultiTensorAdamArgs, i int) []float64 {
	high, low := a.TensorLists[1][i].Float64s(), a.TensorLists[4][i].Float64s()
	for j := range high {
		high[j] = float64(math.Float32frombits(uint32(int64(math.Float32bits(float32(high[j]))) + int64(low[j]))))
	}
	return high
}

func buildAdamCapturable(m *maker, lists int) optim.MultiTensorAdamCapturableArgs {
	a := optim.MultiTensorAdamCapturableArgs{
		NoopFlag: m.flag(4), TensorLists: m.lists(lists), LR: m.number(0.01), Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-6,
		Step: set(m.t, m.dense(tensor.I32, 1), float64(1+m.rng.IntN(100))), Mode: optim.AdamMode(m.rng.IntN(2)), BiasCorrection: m.coin(),
		WeightDecay: 0.1 * float32(m.rng.IntN(2)), InvScale: m.number(0.25 + m.rng.Float64()),
	}
	m.squared(a.TensorLists[3])
	return a
}

func buildSGD(m *maker) optim.MultiTensorSGDArgs {
	a := optim.MultiTensorSGDArgs{
		NoopFlag: m.flag(2), TensorLists: m.lists(3 + m.rng.IntN(2)), WD: 0.1 * float32(m.rng.IntN(2)), Momentum: 0.9 * float32(m.rng.IntN(2)),
		Dampening: 0.1 * float32(m.rng.IntN(3)), LR: 0.01, Nesterov: m.coin(), FirstRun: m.coin(), WDAfterMomentum: m.coin(),
		Scale: 0.5 + m.rng.Float32(),
	}
	if m.big {
		set(m.t, a.NoopFlag, 0)
	}
	return a
}

func buildUnscaleL2Norm(m *maker) optim.MultiTensorUnscaleL2NormArgs {
	a := buildL2Norm(m)
	return optim.MultiTensorUnscaleL2NormArgs{
		NoopFlag: a.NoopFlag, TensorLists: a.TensorLists, InvScale: m.number(m.rng.NormFloat64()), Norm: a.Norm, PerTensor: a.PerTensor,
	}
}

func buildScaleTensor(m *maker) optim.MultiTensorScaleTensorArgs {
	a := buildScale(m)
	return optim.MultiTensorScaleTensorArgs{NoopFlag: a.NoopFlag, TensorLists: a.TensorLists, Scale: m.number(float64(a.Scale))}
}
