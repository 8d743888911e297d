package flagos_test

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

func activationSubjects() []subject {
	var s []subject
	for _, op := range []*opregistry.Op[ops.ActivationArgs]{ops.SiLU, ops.QGELU, ops.GELU, ops.ReLU, ops.SReLU} {
		s = append(s, subjectOf[ops.ActivationArgs]{op, buildActivation, elementwise})
	}
	for _, op := range []*opregistry.Op[ops.DActivationArgs]{ops.DSiLU, ops.DQGELU, ops.DGELU, ops.DReLU, ops.DSReLU} {
		s = append(s, subjectOf[ops.DActivationArgs]{op, buildDActivation, elementwise})
	}
	for _, op := range []*opregistry.Op[ops.DBiasDActivationArgs]{ops.DBiasDSiLU, ops.DBiasDQGELU, ops.DBiasDGELU, ops.DBiasDReLU, ops.DBiasDSReLU} {
		s = append(s, subjectOf[ops.DBiasDActivationArgs]{op, buildDBiasDActivation, summed})
	}
	for _, op := range []*opregistry.Op[ops.ActivationArgs]{ops.SwiGLU, ops.QGEGLU, ops.GEGLU, ops.GLU, ops.ReGLU, ops.SReGLU} {
		s = append(s, subjectOf[ops.ActivationArgs]{op, buildGLU, elementwise})
	}
	for _, op := range []*opregistry.Op[ops.DActivationArgs]{ops.DSwiGLU, ops.DQGEGLU, ops.DGEGLU, ops.DGLU, ops.DReGLU, ops.DSReGLU} {
		s = append(s, subjectOf[ops.DActivationArgs]{op, buildDGLU, elementwise})
	}
	return append(s,
		subjectOf[ops.ClampedSwiGLUArgs]{ops.ClampedSwiGLU, buildClampedSwiGLU, elementwise},
		subjectOf[ops.ClampedDSwiGLUArgs]{ops.ClampedDSwiGLU, buildClampedDSwiGLU, elementwise},
	)
}

// gateWidth is sometimes wider than the chunk of the logistic function.
func gateWidth(m *maker) int {
	if m.rng.IntN(8) == 0 {
		return 1020 + m.rng.IntN(20)
	}
	return m.size(70, 300)
}

func buildActivation(m *maker) ops.ActivationArgs {
	rows, cols := m.size(9, 200), gateWidth(m)
	x := m.fill(m.out(rows, cols))
	a := ops.ActivationArgs{Input: x, Output: x}
	if m.coin() {
		a.Output = m.out(rows, cols)
	}
	return a
}

func buildDActivation(m *maker) ops.DActivationArgs {
	rows, cols := m.size(9, 200), gateWidth(m)
	a := ops.DActivationArgs{Grad: m.fill(m.out(rows, cols)), FwdInput: m.fill(m.out(rows, cols)), Output: m.out(rows, cols)}
	switch m.rng.IntN(3) {
	case 0:
		a.Output = a.Grad
	case 1:
		a.Output = a.FwdInput
	}
	return a
}

func buildDBiasDActivation(m *maker) ops.DBiasDActivationArgs {
	a := buildDActivation(m)
	return ops.DBiasDActivationArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output, DBias: m.mixed(a.Grad.Shape().Cols())}
}

func buildGLU(m *maker) ops.ActivationArgs {
	rows, h := m.size(9, 200), gateWidth(m)
	return ops.ActivationArgs{Input: m.fill(m.out(2, rows, 2*h)), Output: m.out(2, rows, h)}
}

func buildDGLU(m *maker) ops.DActivationArgs {
	rows, h := m.size(9, 200), gateWidth(m)
	x := m.fill(m.out(rows, 2*h))
	a := ops.DActivationArgs{Grad: m.fill(m.out(rows, h)), FwdInput: x, Output: x}
	if m.coin() {
		a.Output = m.out(rows, 2*h)
	}
	return a
}

// bounds draws the constants of the clamped ops; half of the time it leaves all of them out.
func (m *maker) bounds() (limit, alpha, offset ops.OptionalFloat) {
	if m.coin() {
		return limit, alpha, offset
	}
	limits := []float64{0, 0.5, 1, math.Inf(1)}
	return ops.Float(float32(limits[m.rng.IntN(len(limits))])), ops.Float(float32(m.rng.NormFloat64())), ops.Float(float32(m.rng.NormFloat64()))
}

func buildClampedSwiGLU(m *maker) ops.ClampedSwiGLUArgs {
	f := buildGLU(m)
	a := ops.ClampedSwiGLUArgs{Input: f.Input, Output: f.Output}
	a.Limit, a.Alpha, a.GLULinearOffset = m.bounds()
	return a
}

func buildClampedDSwiGLU(m *maker) ops.ClampedDSwiGLUArgs {
	f := buildDGLU(m)
	a := ops.ClampedDSwiGLUArgs{Grad: f.Grad, FwdInput: f.FwdInput, Output: f.Output}
	a.Limit, a.Alpha, a.GLULinearOffset = m.bounds()
	return a
}
