package optim

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		MultiTensorAdam, MultiTensorL2Norm, MultiTensorScale,
		MultiTensorAdamParamRemainder, MultiTensorAdamFP8,
		MultiTensorAdamCapturable, MultiTensorAdamCapturableMaster,
		MultiTensorSGD, MultiTensorScaleTensor, MultiTensorUnscaleL2Norm,
	}
}
