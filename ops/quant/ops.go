package quant

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		MultiTensorComputeScaleAndScaleInv, MultiTensorComputeScaleInvE8M0,
		ComputeAmax, FusedAmaxAndScaleUpdateAfterReduction,
		Quantize, Dequantize, BgradQuantize,
		MultiTensorQuantize, SplitQuantize, GroupQuantize, BgradGroupQuantize, CastToFP8,
		FP8Transpose, SwapFirstDims, NVFP4DataTranspose, NVFP42DMultiTensorTranspose, SplitsToOffsets,
		FP8BlockScalingComputePartialAmax, FP8BlockScalingPartialCast,
		MXFP8ScalingComputePartialAmax, MXFP8ScalingPartialCast,
		NVFP42DComputePartialAmax, NVFP4MultiTensorComputePartialAmax,
		NVFP42DPartialCast, NVFP4MultiTensor2DPartialCast,
		NVFP4ComputeGlobalScale, NVFP4ComputePerBlockScale, NVFP4ExpandScaleToFP8,
		NVFP4FusedScale, NVFP4MultiTensorFusedScale,
	}
}
