// Package quant has the oracles of the ops of the family quant.
package quant

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(quant.MultiTensorComputeScaleAndScaleInv, multiTensorComputeScaleAndScaleInv),
		host.Impl(quant.MultiTensorComputeScaleInvE8M0, multiTensorComputeScaleInvE8M0),
		host.Impl(quant.ComputeAmax, computeAmax),
		host.Impl(quant.FusedAmaxAndScaleUpdateAfterReduction, fusedAmaxAndScaleUpdate),
		host.Impl(quant.Quantize, quantize),
		host.Impl(quant.Dequantize, dequantize),
		host.Impl(quant.BgradQuantize, bgradQuantize),
		host.Impl(quant.MultiTensorQuantize, multiTensorQuantize),
		host.Impl(quant.SplitQuantize, splitQuantize),
		host.Impl(quant.GroupQuantize, groupQuantize),
		host.Impl(quant.BgradGroupQuantize, bgradGroupQuantize),
		host.Impl(quant.CastToFP8, castToFP8),
		host.Impl(quant.FP8Transpose, fp8Transpose),
		host.Impl(quant.SwapFirstDims, swapFirstDims),
		host.Impl(quant.NVFP4DataTranspose, nvfp4DataTranspose),
		host.Impl(quant.NVFP42DMultiTensorTranspose, nvfp42DMultiTensorTranspose),
		host.Impl(quant.SplitsToOffsets, splitsToOffsets),
		host.Impl(quant.FP8BlockScalingComputePartialAmax, partialAmax),
		host.Impl(quant.FP8BlockScalingPartialCast, partialCast),
		host.Impl(quant.MXFP8ScalingComputePartialAmax, mxfp8PartialAmax),
		host.Impl(quant.MXFP8ScalingPartialCast, mxfp8PartialCast),
		host.Impl(quant.NVFP42DComputePartialAmax, partialAmax),
		host.Impl(quant.NVFP4MultiTensorComputePartialAmax, nvfp4MultiTensorPartialAmax),
		host.Impl(quant.NVFP42DPartialCast, nvfp42DPartialCast),
		host.Impl(quant.NVFP4MultiTensor2DPartialCast, nvfp4MultiTensor2DPartialCast),
		host.Impl(quant.NVFP4ComputeGlobalScale, nvfp4ComputeGlobalScale),
		host.Impl(quant.NVFP4ComputePerBlockScale, nvfp4ComputePerBlockScale),
		host.Impl(quant.NVFP4ExpandScaleToFP8, nvfp4ExpandScaleToFP8),
		host.Impl(quant.NVFP4FusedScale, nvfp4FusedScale),
		host.Impl(quant.NVFP4MultiTensorFusedScale, nvfp4MultiTensorFusedScale),
	}
}
