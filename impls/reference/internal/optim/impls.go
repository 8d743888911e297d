// Package optim has the oracles of the ops of the family optim.
package optim

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(optim.MultiTensorAdam, multiTensorAdam),
		host.Impl(optim.MultiTensorL2Norm, multiTensorL2Norm),
		host.Impl(optim.MultiTensorScale, multiTensorScale),
		host.Impl(optim.MultiTensorAdamParamRemainder, multiTensorAdamParamRemainder),
		host.Impl(optim.MultiTensorAdamFP8, multiTensorAdamFP8),
		host.Impl(optim.MultiTensorAdamCapturable, multiTensorAdamCapturable),
		host.Impl(optim.MultiTensorAdamCapturableMaster, multiTensorAdamCapturable),
		host.Impl(optim.MultiTensorSGD, multiTensorSGD),
		host.Impl(optim.MultiTensorScaleTensor, multiTensorScaleTensor),
		host.Impl(optim.MultiTensorUnscaleL2Norm, multiTensorUnscaleL2Norm),
	}
}
