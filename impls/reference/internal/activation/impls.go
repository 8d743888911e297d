// Package activation has the oracles of the ops of the family activation.
package activation

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(activation.SwiGLU, gated(silu)),
		host.Impl(activation.DSwiGLU, gatedGradient(silu, siluDerivative)),
		host.Impl(activation.GELU, elementwise(host.GELU)),
		host.Impl(activation.QGELU, elementwise(qgelu)),
		host.Impl(activation.ReLU, elementwise(relu)),
		host.Impl(activation.SReLU, elementwise(srelu)),
		host.Impl(activation.SiLU, elementwise(silu)),
		host.Impl(activation.GEGLU, gated(host.GELU)),
		host.Impl(activation.GLU, gated(sigmoid)),
		host.Impl(activation.QGEGLU, gated(qgelu)),
		host.Impl(activation.ReGLU, gated(relu)),
		host.Impl(activation.SReGLU, gated(srelu)),
		host.Impl(activation.ClampedSwiGLU, clampedSwiGLU),
		host.Impl(activation.DGELU, elementwiseGradient(host.GELUDerivative)),
		host.Impl(activation.DQGELU, elementwiseGradient(qgeluDerivative)),
		host.Impl(activation.DReLU, elementwiseGradient(reluDerivative)),
		host.Impl(activation.DSReLU, elementwiseGradient(sreluDerivative)),
		host.Impl(activation.DSiLU, elementwiseGradient(siluDerivative)),
		host.Impl(activation.DGEGLU, gatedGradient(host.GELU, host.GELUDerivative)),
		host.Impl(activation.DGLU, gatedGradient(sigmoid, sigmoidDerivative)),
		host.Impl(activation.DQGEGLU, gatedGradient(qgelu, qgeluDerivative)),
		host.Impl(activation.DReGLU, gatedGradient(relu, reluDerivative)),
		host.Impl(activation.DSReGLU, gatedGradient(srelu, sreluDerivative)),
		host.Impl(activation.ClampedDSwiGLU, clampedDSwiGLU),
		host.Impl(activation.DBiasDGELU, biasGradient(host.GELUDerivative)),
		host.Impl(activation.DBiasDSiLU, biasGradient(siluDerivative)),
		host.Impl(activation.DBiasDReLU, biasGradient(reluDerivative)),
		host.Impl(activation.DBiasDQGELU, biasGradient(qgeluDerivative)),
		host.Impl(activation.DBiasDSReLU, biasGradient(sreluDerivative)),
	}
}
