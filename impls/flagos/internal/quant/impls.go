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
		host.WithAny(host.Impl(quant.SwapFirstDims, swapFirstDims)),
		host.WithAny(host.Impl(quant.SplitsToOffsets, splitsToOffsets)),
		host.Impl(quant.MultiTensorComputeScaleInvE8M0, multiTensorComputeScaleE8M0),
		host.Impl(quant.FP8BlockScalingComputePartialAmax, partialAmax),
		host.Impl(quant.FP8BlockScalingPartialCast, partialCast),
		host.Impl(quant.MXFP8ScalingComputePartialAmax, mxfp8PartialAmax),
		host.Impl(quant.MXFP8ScalingPartialCast, mxfp8PartialCast),
		host.Impl(quant.NVFP42DComputePartialAmax, partialAmax),
		host.Impl(quant.NVFP4MultiTensorComputePartialAmax, nvfp4PartialAmax),
		host.WithBytes(host.Impl(quant.NVFP4DataTranspose, nvfp4DataTranspose)),
		host.WithBytes(host.Impl(quant.NVFP42DMultiTensorTranspose, nvfp4TilesTranspose)),
		host.Impl(quant.NVFP4ComputeGlobalScale, nvfp4GlobalScale),
		host.Impl(quant.NVFP4ComputePerBlockScale, nvfp4BlockScale),
		host.Impl(quant.NVFP4ExpandScaleToFP8, nvfp4ExpandScale),
		host.Impl(quant.NVFP4FusedScale, nvfp4FusedScale),
		host.Impl(quant.NVFP4MultiTensorFusedScale, nvfp4FusedScales),
		host.Impl(quant.NVFP42DPartialCast, nvfp4PartialCast),
		host.Impl(quant.NVFP4MultiTensor2DPartialCast, nvfp4PartialCasts),
	}
}
