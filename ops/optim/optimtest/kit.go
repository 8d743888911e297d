// Package optimtest has the conformance cases of package optim.
package optimtest

import (
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package optim.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[optim.MultiTensorAdamArgs]{Op: optim.MultiTensorAdam, Cases: adamCases}.Suite(),
			opstest.Spec[optim.MultiTensorL2NormArgs]{Op: optim.MultiTensorL2Norm, Cases: l2normCases}.Suite(),
			opstest.Spec[optim.MultiTensorScaleArgs]{Op: optim.MultiTensorScale, Cases: scaleCases}.Suite(),
			opstest.Spec[optim.MultiTensorAdamArgs]{Op: optim.MultiTensorAdamParamRemainder, Cases: remainderCases, Values: remainderValues}.Suite(),
			opstest.Spec[optim.MultiTensorAdamArgs]{Op: optim.MultiTensorAdamFP8, Cases: adamFP8Cases}.Suite(),
			opstest.Spec[optim.MultiTensorAdamCapturableArgs]{Op: optim.MultiTensorAdamCapturable, Cases: capturableCases}.Suite(),
			opstest.Spec[optim.MultiTensorAdamCapturableArgs]{Op: optim.MultiTensorAdamCapturableMaster, Cases: capturableMasterCases}.Suite(),
			opstest.Spec[optim.MultiTensorSGDArgs]{Op: optim.MultiTensorSGD, Cases: sgdCases}.Suite(),
			opstest.Spec[optim.MultiTensorScaleTensorArgs]{Op: optim.MultiTensorScaleTensor, Cases: scaleTensorCases}.Suite(),
			opstest.Spec[optim.MultiTensorUnscaleL2NormArgs]{Op: optim.MultiTensorUnscaleL2Norm, Cases: unscaleL2NormCases}.Suite(),
		},
	}
}
