// Package activationtest has the conformance cases of package activation.
package activationtest

import (
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package activation.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[activation.SwiGLUArgs]{Op: activation.SwiGLU, Cases: swigluCases}.Suite(),
			opstest.Spec[activation.DSwiGLUArgs]{Op: activation.DSwiGLU, Cases: dswigluCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.GELU, Cases: activationCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.QGELU, Cases: activationCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.ReLU, Cases: activationCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.SReLU, Cases: activationCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.SiLU, Cases: activationCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.GEGLU, Cases: gluCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.GLU, Cases: gluCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.QGEGLU, Cases: gluCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.ReGLU, Cases: gluCases}.Suite(),
			opstest.Spec[activation.ActivationArgs]{Op: activation.SReGLU, Cases: gluCases}.Suite(),
			opstest.Spec[activation.ClampedSwiGLUArgs]{Op: activation.ClampedSwiGLU, Cases: clampedSwiGLUCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DGELU, Cases: dactivationCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DQGELU, Cases: dactivationCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DReLU, Cases: dactivationCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DSReLU, Cases: dactivationCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DSiLU, Cases: dactivationCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DGEGLU, Cases: dgluCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DGLU, Cases: dgluCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DQGEGLU, Cases: dgluCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DReGLU, Cases: dgluCases}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: activation.DSReGLU, Cases: dgluCases}.Suite(),
			opstest.Spec[activation.ClampedDSwiGLUArgs]{Op: activation.ClampedDSwiGLU, Cases: clampedDSwiGLUCases}.Suite(),
			opstest.Spec[activation.DBiasDActivationArgs]{Op: activation.DBiasDGELU, Cases: dbiasCases}.Suite(),
			opstest.Spec[activation.DBiasDActivationArgs]{Op: activation.DBiasDSiLU, Cases: dbiasCases}.Suite(),
			opstest.Spec[activation.DBiasDActivationArgs]{Op: activation.DBiasDReLU, Cases: dbiasCases}.Suite(),
			opstest.Spec[activation.DBiasDActivationArgs]{Op: activation.DBiasDQGELU, Cases: dbiasCases}.Suite(),
			opstest.Spec[activation.DBiasDActivationArgs]{Op: activation.DBiasDSReLU, Cases: dbiasCases}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: activation.DSwiGLU, Forward: activation.SwiGLU, Cases: gluGradCases(activation.SwiGLU, activation.DSwiGLU)},
			{Backward: activation.DGELU, Forward: activation.GELU, Cases: activationGradCases(activation.GELU, activation.DGELU)},
			{Backward: activation.DQGELU, Forward: activation.QGELU, Cases: activationGradCases(activation.QGELU, activation.DQGELU)},
			{Backward: activation.DReLU, Forward: activation.ReLU, Cases: activationGradCases(activation.ReLU, activation.DReLU)},
			{Backward: activation.DSReLU, Forward: activation.SReLU, Cases: activationGradCases(activation.SReLU, activation.DSReLU)},
			{Backward: activation.DSiLU, Forward: activation.SiLU, Cases: activationGradCases(activation.SiLU, activation.DSiLU)},
			{Backward: activation.DGEGLU, Forward: activation.GEGLU, Cases: gluGradCases(activation.GEGLU, activation.DGEGLU)},
			{Backward: activation.DGLU, Forward: activation.GLU, Cases: gluGradCases(activation.GLU, activation.DGLU)},
			{Backward: activation.DQGEGLU, Forward: activation.QGEGLU, Cases: gluGradCases(activation.QGEGLU, activation.DQGEGLU)},
			{Backward: activation.DReGLU, Forward: activation.ReGLU, Cases: gluGradCases(activation.ReGLU, activation.DReGLU)},
			{Backward: activation.DSReGLU, Forward: activation.SReGLU, Cases: gluGradCases(activation.SReGLU, activation.DSReGLU)},
			{Backward: activation.ClampedDSwiGLU, Forward: activation.ClampedSwiGLU, Cases: clampedGradCases},
			{Backward: activation.DBiasDGELU, Forward: activation.GELU, Cases: dbiasGradCases(activation.GELU, activation.DBiasDGELU)},
			{Backward: activation.DBiasDSiLU, Forward: activation.SiLU, Cases: dbiasGradCases(activation.SiLU, activation.DBiasDSiLU)},
			{Backward: activation.DBiasDReLU, Forward: activation.ReLU, Cases: dbiasGradCases(activation.ReLU, activation.DBiasDReLU)},
			{Backward: activation.DBiasDQGELU, Forward: activation.QGELU, Cases: dbiasGradCases(activation.QGELU, activation.DBiasDQGELU)},
			{Backward: activation.DBiasDSReLU, Forward: activation.SReLU, Cases: dbiasGradCases(activation.SReLU, activation.DBiasDSReLU)},
		},
	}
}
