package flagos_test

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

func softmaxSubjects() []subject {
	s := []subject{
		subjectOf[softmax.ScaledMaskedSoftmaxForwardArgs]{softmax.ScaledMaskedSoftmaxForward, buildMaskedSoftmax, elementwise},
		subjectOf[softmax.SoftmaxArgs]{softmax.ScaledUpperTriangMaskedSoftmaxForward, buildTriangularSoftmax, elementwise},
		subjectOf[softmax.SoftmaxBackwardArgs]{softmax.ScaledUpperTriangMaskedSoftmaxBackward, buildTriangularSoftmaxBackward, summed},
	}
	for _, op := range []*opregistry.Op[softmax.SoftmaxArgs]{softmax.ScaledSoftmaxForward, softmax.ScaledAlignedCausalMaskedSoftmaxForward} {
		s = append(s, subjectOf[softmax.SoftmaxArgs]{op, buildSoftmax, elementwise})
	}
	for _, op := range []*opregistry.Op[softmax.SoftmaxBackwardArgs]{
		softmax.ScaledSoftmaxBackward, softmax.ScaledMaskedSoftmaxBackward, softmax.ScaledAlignedCausalMaskedSoftmaxBackward,
	} {
		s = append(s, subjectOf[softmax.SoftmaxBackwardArgs]{op, buildSoftmaxBackward, summed})
	}
	return s
}

// scores draws the shape of attention scores.
func scores(m *maker) []int {
	return []int{m.size(2, 3), m.size(3, 3), m.size(9, 40), gateWidth(m)}
}

func square(m *maker) []int {
	n := m.size(40, 150)
	return []int{m.size(3, 5), n, n}
}

func softmaxOf(m *maker, shape []int) softmax.SoftmaxArgs {
	x := m.fill(m.out(shape...))
	a := softmax.SoftmaxArgs{Input: x, Output: x, ScaleFactor: float32(m.rng.NormFloat64())}
	if m.coin() {
		a.Output = m.out(shape...)
	}
	return a
}

func buildSoftmax(m *maker) softmax.SoftmaxArgs           { return softmaxOf(m, scores(m)) }
func buildTriangularSoftmax(m *maker) softmax.SoftmaxArgs { return softmaxOf(m, square(m)) }

func buildMaskedSoftmax(m *maker) softmax.ScaledMaskedSoftmaxForwardArgs {
	f := buildSoftmax(m)
	shape := append([]int(nil), f.Input.Shape()...)
	shape[1] = 1
	if m.coin() {
		shape[0] = 1
	}
	a := softmax.ScaledMaskedSoftmaxForwardArgs{Input: f.Input, Output: f.Output, ScaleFactor: f.ScaleFactor}
	if m.coin() {
		a.Mask = m.fill(m.out(shape...))
		return a
	}
	a.Mask = m.dense([]tensor.DType{tensor.U8, tensor.Bool}[m.rng.IntN(2)], shape...)
	values := make([]float64, a.Mask.NumElements())
	for i := range values {
		// Stretches of a value, some masked throughout.
		if cols := shape[3]; i > 0 && m.rng.IntN(cols) > 0 {
			values[i] = values[i-1]
		} else {
			values[i] = float64(m.rng.IntN(2))
		}
	}
	set(m.t, a.Mask, values...)
	return a
}

func softmaxBackwardOf(m *maker, shape []int) softmax.SoftmaxBackwardArgs {
	dy := m.fill(m.out(shape...))
	y := m.out(shape...)
	values := make([]float64, y.NumElements())
	for i := range values {
		values[i] = math.Abs(m.rng.NormFloat64()) / float64(shape[len(shape)-1])
	}
	a := softmax.SoftmaxBackwardArgs{OutputGrads: dy, SoftmaxResults: set(m.t, y, values...), Output: dy, ScaleFactor: float32(m.rng.NormFloat64())}
	if m.coin() {
		a.Output = m.out(shape...)
	}
	return a
}

func buildSoftmaxBackward(m *maker) softmax.SoftmaxBackwardArgs {
	return softmaxBackwardOf(m, scores(m))
}
func buildTriangularSoftmaxBackward(m *maker) softmax.SoftmaxBackwardArgs {
	return softmaxBackwardOf(m, square(m))
}
