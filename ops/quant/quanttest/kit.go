// Package quanttest has the conformance cases of package quant.
package quanttest

import (
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package quant.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[quant.MultiTensorComputeScaleAndScaleInvArgs]{Op: quant.MultiTensorComputeScaleAndScaleInv, Cases: computeScaleCases}.Suite(),
			opstest.Spec[quant.MultiTensorComputeScaleInvE8M0Args]{Op: quant.MultiTensorComputeScaleInvE8M0, Cases: computeE8M0Cases}.Suite(),
			opstest.Spec[quant.ComputeAmaxArgs]{Op: quant.ComputeAmax, Cases: computeAmaxCases}.Suite(),
			opstest.Spec[quant.FusedAmaxAndScaleUpdateArgs]{Op: quant.FusedAmaxAndScaleUpdateAfterReduction, Cases: fusedAmaxCases}.Suite(),
			opstest.Spec[quant.QuantizeArgs]{Op: quant.Quantize, Cases: quantizeCases}.Suite(),
			opstest.Spec[quant.DequantizeArgs]{Op: quant.Dequantize, Cases: dequantizeCases}.Suite(),
			opstest.Spec[quant.BgradQuantizeArgs]{Op: quant.BgradQuantize, Cases: bgradCases}.Suite(),
			opstest.Spec[quant.MultiTensorQuantizeArgs]{Op: quant.MultiTensorQuantize, Cases: multiQuantizeCases}.Suite(),
			opstest.Spec[quant.SplitQuantizeArgs]{Op: quant.SplitQuantize, Cases: splitQuantizeCases}.Suite(),
			opstest.Spec[quant.GroupQuantizeArgs]{Op: quant.GroupQuantize, Cases: groupQuantizeCases}.Suite(),
			opstest.Spec[quant.BgradGroupQuantizeArgs]{Op: quant.BgradGroupQuantize, Cases: bgradGroupCases}.Suite(),
			opstest.Spec[quant.CastToFP8Args]{Op: quant.CastToFP8, Cases: castToFP8Cases}.Suite(),
			opstest.Spec[quant.FP8TransposeArgs]{Op: quant.FP8Transpose, Cases: fp8TransposeCases, Bitwise: true}.Suite(),
			opstest.Spec[quant.SwapFirstDimsArgs]{Op: quant.SwapFirstDims, Cases: swapFirstDimsCases, Bitwise: true}.Suite(),
			opstest.Spec[quant.NVFP4DataTransposeArgs]{Op: quant.NVFP4DataTranspose, Cases: nvfp4TransposeCases}.Suite(),
			opstest.Spec[quant.NVFP42DMultiTensorTransposeArgs]{Op: quant.NVFP42DMultiTensorTranspose, Cases: nvfp4MultiTransposeCases}.Suite(),
			opstest.Spec[quant.SplitsToOffsetsArgs]{Op: quant.SplitsToOffsets, Cases: splitsCases}.Suite(),
			opstest.Spec[quant.PartialAmaxArgs]{Op: quant.FP8BlockScalingComputePartialAmax, Cases: blockPartialAmaxCases}.Suite(),
			opstest.Spec[quant.PartialCastArgs]{Op: quant.FP8BlockScalingPartialCast, Cases: blockPartialCastCases}.Suite(),
			opstest.Spec[quant.MXFP8PartialAmaxArgs]{Op: quant.MXFP8ScalingComputePartialAmax, Cases: mxfp8PartialAmaxCases}.Suite(),
			opstest.Spec[quant.MXFP8PartialCastArgs]{Op: quant.MXFP8ScalingPartialCast, Cases: mxfp8PartialCastCases}.Suite(),
			opstest.Spec[quant.PartialAmaxArgs]{Op: quant.NVFP42DComputePartialAmax, Cases: nvfp4PartialAmaxCases}.Suite(),
			opstest.Spec[quant.NVFP4MultiTensorComputePartialAmaxArgs]{Op: quant.NVFP4MultiTensorComputePartialAmax, Cases: nvfp4MultiPartialAmaxCases}.Suite(),
			opstest.Spec[quant.NVFP42DPartialCastArgs]{Op: quant.NVFP42DPartialCast, Cases: nvfp4PartialCastCases}.Suite(),
			opstest.Spec[quant.NVFP4MultiTensor2DPartialCastArgs]{Op: quant.NVFP4MultiTensor2DPartialCast, Cases: nvfp4MultiPartialCastCases}.Suite(),
			opstest.Spec[quant.NVFP4ComputeGlobalScaleArgs]{Op: quant.NVFP4ComputeGlobalScale, Cases: globalScaleCases}.Suite(),
			opstest.Spec[quant.NVFP4ComputePerBlockScaleArgs]{Op: quant.NVFP4ComputePerBlockScale, Cases: perBlockScaleCases}.Suite(),
			opstest.Spec[quant.NVFP4ExpandScaleToFP8Args]{Op: quant.NVFP4ExpandScaleToFP8, Cases: expandScaleCases}.Suite(),
			opstest.Spec[quant.NVFP4FusedScaleArgs]{Op: quant.NVFP4FusedScale, Cases: fusedScaleCases}.Suite(),
			opstest.Spec[quant.NVFP4MultiTensorFusedScaleArgs]{Op: quant.NVFP4MultiTensorFusedScale, Cases: multiFusedScaleCases}.Suite(),
		},
	}
}
