package flagos_test

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
)

func activationSubjects() []subject {
	var s []subject
	for _, op := range []*opregistry.Op[activation.ActivationArgs]{activation.SiLU, activation.QGELU, activation.GELU, activation.GELUErf, activation.ReLU, activation.SReLU} {
		s = append(s, subjectOf[activation.ActivationArgs]{op, buildActivation, elementwise})
	}
	for _, op := range []*opregistry.Op[activation.DActivationArgs]{activation.DSiLU, activation.DQGELU, activation.DGELU, activation.DGELUErf, activation.DReLU, activation.DSReLU} {
		s = append(s, subjectOf[activation.DActivationArgs]{op, buildDActivation, elementwise})
	}
	for _, op := range []*opregistry.Op[activation.DBiasDActivationArgs]{activation.DBiasDSiLU, activation.DBiasDQGELU, activation.DBiasDGELU, activation.DBiasDGELUErf, activation.DBiasDReLU, activation.DBiasDSReLU} {
		s = append(s, subjectOf[activation.DBiasDActivationArgs]{op, buildDBiasDActivation, summed})
	}
	for _, op := range []*opregistry.Op[activation.ActivationArgs]{activation.SwiGLU, activation.QGEGLU, activation.GEGLU, activation.GEGLUErf, activation.GLU, activation.ReGLU, activation.SReGLU} {
		s = append(s, subjectOf[activation.ActivationArgs]{op, buildGLU, elementwise})
	}
	for _, op := range []*opregistry.Op[activation.DActivationArgs]{activation.DSwiGLU, activation.DQGEGLU, activation.DGEGLU, activation.DGEGLUErf, activation.DGLU, activation.DReGLU, activation.DSReGLU} {
		s = append(s, subjectOf[activation.DActivationArgs]{op, buildDGLU, elementwise})
	}
	return append(s,
		subjectOf[activation.SoftcapArgs]{activation.Softcap, buildSoftcap, elementwise},
		subjectOf[activation.DSoftcapArgs]{activation.DSoftcap, buildDSoftcap, elementwise},
		subjectOf[activation.ClampedSwiGLUArgs]{activation.ClampedSwiGLU, buildClampedSwiGLU, elementwise},
		subjectOf[activation.ClampedDSwiGLUArgs]{activation.ClampedDSwiGLU, buildClampedDSwiGLU, elementwise},
	)
}

// gateWidth is sometimes wider than the chunk of the logistic function.
func gateWidth(m *maker) int {
	if m.rng.IntN(8) == 0 {
		return 1020 + m.rng.IntN(20)
	}
	return m.size(70, 300)
}

func buildActivation(m *maker) activation.ActivationArgs {
	rows, cols := m.size(9, 200), gateWidth(m)
	x := m.fill(m.out(rows, cols))
	a := activation.ActivationArgs{Input: x, Output: x}
	if m.coin() {
		a.Output = m.out(rows, cols)
	}
	return a
}

func buildDActivation(m *maker) activation.DActivationArgs {
	rows, cols := m.size(9, 200), gateWidth(m)
	a := activation.DActivationArgs{Grad: m.fill(m.out(rows, cols)), FwdInput: m.fill(m.out(rows, cols)), Output: m.out(rows, cols)}
	switch m.rng.IntN(3) {
	case 0:
		a.Output = a.Grad
	case 1:
		a.Output = a.FwdInput
	}
	return a
}

func buildDBiasDActivation(m *maker) activation.DBiasDActivationArgs {
	a := buildDActivation(m)
	return activation.DBiasDActivationArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output, DBias: m.mixed(a.Grad.Shape().Cols())}
}

func buildGLU(m *maker) activation.ActivationArgs {
	rows, h := m.size(9, 200), gateWidth(m)
	return activation.ActivationArgs{Input: m.fill(m.out(2, rows, 2*h)), Output: m.out(2, rows, h)}
}

func buildDGLU(m *maker) activation.DActivationArgs {
	rows, h := m.size(9, 200), gateWidth(m)
	x := m.fill(m.out(rows, 2*h))
	a := activation.DActivationArgs{Grad: m.fill(m.out(rows, h)), FwdInput: x, Output: x}
	if m.coin() {
		a.Output = m.out(rows, 2*h)
	}
	return a
}

// bounds draws the constants of the clamped ops; half of the time it leaves all of them out.
func (m *maker) bounds() (limit, alpha, offset opregistry.OptionalFloat) {
	if m.coin() {
		return limit, alpha, offset
	}
	limits := []float64{0, 0.5, 1, math.Inf(1)}
	return opregistry.Float(float32(limits[m.rng.IntN(len(limits))])), opregistry.Float(float32(m.rng.NormFloat64())), opregistry.Float(float32(m.rng.NormFloat64()))
}

func buildSoftcap(m *maker) activation.SoftcapArgs {
	a := buildActivation(m)
	return activation.SoftcapArgs{Input: a.Input, Output: a.Output, Limit: 0.5 + m.rng.Float32()}
}

func buildDSoftcap(m *maker) activation.DSoftcapArgs {
	a := buildDActivation(m)
	return activation.DSoftcapArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output, Limit: 0.5 + m.rng.Float32()}
}

func buildClampedSwiGLU(m *maker) activation.ClampedSwiGLUArgs {
	f := buildGLU(m)
	a := activation.ClampedSwiGLUArgs{Input: f.Input, Output: f.Output}
	a.Limit, a.Alpha, a.GLULinearOffset = m.bounds()
	return a
}

func buildClampedDSwiGLU(m *maker) activation.ClampedDSwiGLUArgs {
	f := buildDGLU(m)
	a := activation.ClampedDSwiGLUArgs{Grad: f.Grad, FwdInput: f.FwdInput, Output: f.Output}
	a.Limit, a.Alpha, a.GLULinearOffset = m.bounds()
	return a
}
