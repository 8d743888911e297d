package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
)

// Impls returns the impls of the family.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(quant.ComputeAmax, computeAmax),
		host.Impl(quant.MultiTensorComputeScaleAndScaleInv, multiTensorComputeScale),
		host.Impl(quant.FusedAmaxAndScaleUpdateAfterReduction, updateScales),
		host.Impl(quant.Quantize, quantize),
		host.WithBytes(host.Impl(quant.Dequantize, dequantize)),
		host.Impl(quant.BgradQuantize, bgradQuantize),
		host.Impl(quant.MultiTensorQuantize, multiTensorQuantize),
		host.Impl(quant.SplitQuantize, splitQuantize),
		host.Impl(quant.GroupQuantize, groupQuantize),
		host.Impl(quant.BgradGroupQuantize, bgradGroupQuantize),
		host.Impl(quant.CastToFP8, castToFP8),
		host.WithBytes(host.Impl(quant.FP8Transpose, fp8Transpose)),
	}
}
