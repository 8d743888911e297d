package reference

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/quant"
	ropeops "github.com/primus-fl/primus/ops/rope"
	softmaxops "github.com/primus-fl/primus/ops/softmax"
)

// computing returns the impls of the ops that compute something on one rank.
func computing() []opregistry.Impl {
	return []opregistry.Impl{
		impl(gemm.GenericGemm, genericGemm),
		impl(gemm.TEGeneralGroupedGemm, teGeneralGroupedGemm),
		impl(gemm.TEGeneralGroupedGemmForGroupedTensor, groupedGemm),
		impl(gemm.TEGeneralGroupedGemmForDiscreteIn, groupedGemm),
		impl(gemm.TEGeneralGroupedGemmForDiscreteOut, groupedGemm),

		impl(norm.RMSNormFwd, rmsnormFwd),
		impl(norm.RMSNormBwd, rmsnormBwd),
		impl(norm.ResidualAdd, residualAdd),
		impl(norm.RMSNormBwdAdd, rmsnormBwdAdd),
		impl(norm.LayerNormFwd, layernormFwd),
		impl(norm.LayerNormBwd, layernormBwd),

		impl(activation.SwiGLU, gated(silu)),
		impl(activation.DSwiGLU, gatedGradient(silu, siluDerivative)),
		impl(activation.GELU, elementwise(geluOf)),
		impl(activation.GELUErf, elementwise(geluErf)),
		impl(activation.QGELU, elementwise(qgelu)),
		impl(activation.ReLU, elementwise(relu)),
		impl(activation.SReLU, elementwise(srelu)),
		impl(activation.SiLU, elementwise(silu)),
		impl(activation.GEGLU, gated(geluOf)),
		impl(activation.GEGLUErf, gated(geluErf)),
		impl(activation.GLU, gated(sigmoid)),
		impl(activation.QGEGLU, gated(qgelu)),
		impl(activation.ReGLU, gated(relu)),
		impl(activation.SReGLU, gated(srelu)),
		impl(activation.ClampedSwiGLU, clampedSwiGLU),
		impl(activation.Softcap, softcap),
		impl(activation.DSoftcap, dsoftcap),
		impl(activation.DGELU, elementwiseGradient(geluDerivative)),
		impl(activation.DGELUErf, elementwiseGradient(geluErfDerivative)),
		impl(activation.DQGELU, elementwiseGradient(qgeluDerivative)),
		impl(activation.DReLU, elementwiseGradient(reluDerivative)),
		impl(activation.DSReLU, elementwiseGradient(sreluDerivative)),
		impl(activation.DSiLU, elementwiseGradient(siluDerivative)),
		impl(activation.DGEGLU, gatedGradient(geluOf, geluDerivative)),
		impl(activation.DGEGLUErf, gatedGradient(geluErf, geluErfDerivative)),
		impl(activation.DGLU, gatedGradient(sigmoid, sigmoidDerivative)),
		impl(activation.DQGEGLU, gatedGradient(qgelu, qgeluDerivative)),
		impl(activation.DReGLU, gatedGradient(relu, reluDerivative)),
		impl(activation.DSReGLU, gatedGradient(srelu, sreluDerivative)),
		impl(activation.ClampedDSwiGLU, clampedDSwiGLU),
		impl(activation.DBiasDGELU, biasGradient(geluDerivative)),
		impl(activation.DBiasDGELUErf, biasGradient(geluErfDerivative)),
		impl(activation.DBiasDSiLU, biasGradient(siluDerivative)),
		impl(activation.DBiasDReLU, biasGradient(reluDerivative)),
		impl(activation.DBiasDQGELU, biasGradient(qgeluDerivative)),
		impl(activation.DBiasDSReLU, biasGradient(sreluDerivative)),

		impl(softmaxops.ScaledSoftmaxForward, softmax(everyColumn)),
		impl(softmaxops.ScaledSoftmaxBackward, softmaxGradient(everyColumn)),
		impl(softmaxops.ScaledMaskedSoftmaxForward, maskedSoftmax),
		impl(softmaxops.ScaledMaskedSoftmaxBackward, softmaxGradient(everyColumn)),
		impl(softmaxops.ScaledUpperTriangMaskedSoftmaxForward, softmax(causalColumns)),
		impl(softmaxops.ScaledUpperTriangMaskedSoftmaxBackward, softmaxGradient(causalColumns)),
		impl(softmaxops.ScaledAlignedCausalMaskedSoftmaxForward, softmax(causalColumns)),
		impl(softmaxops.ScaledAlignedCausalMaskedSoftmaxBackward, softmaxGradient(causalColumns)),

		impl(ropeops.FusedRopeForward, fusedRopeForward),
		impl(ropeops.FusedRopeBackward, fusedRopeBackward),
		impl(ropeops.FusedQKVRopeForward, fusedQKVRopeForward),
		impl(ropeops.FusedQKVRopeBackward, fusedQKVRopeBackward),

		impl(attentionops.FusedAttnFwd, fusedAttnFwd),
		impl(attentionops.FusedAttnBwd, fusedAttnBwd),
		impl(attentionops.FAPrepareFwd, faPrepareFwd),
		impl(attentionops.FAPrepareBwd, faPrepareBwd),
		impl(attentionops.CopyToKVCache, copyToKVCache),
		impl(attentionops.ConvertTHDToBSHD, convertTHDToBSHD),
		impl(attentionops.ConvertBSHDToTHD, convertBSHDToTHD),
		impl(attentionops.GatedDeltaNetForward, gatedDeltaNetForward),
		impl(attentionops.THDGetPartitionedIndices, thdGetPartitionedIndices),
		impl(attentionops.THDReadHalfTensor, thdReadHalfTensor),
		impl(attentionops.THDReadSecondHalfLSE, thdReadSecondHalfLSE),
		impl(attentionops.THDSecondHalfLSECorrection, thdSecondHalfLSECorrection),
		impl(attentionops.THDOutCorrection, thdOutCorrection),
		impl(attentionops.THDGradCorrection, thdGradCorrection),

		impl(dropout.DropoutFwd, dropoutFwd),
		impl(dropout.DropoutBwd, dropoutBwd),

		impl(moe.MoEPermuteFwd, moePermuteFwd),
		impl(moe.MoEPermuteBwd, moeUnpermute),
		impl(moe.MoEUnpermuteFwd, moeUnpermute),
		impl(moe.MoEUnpermuteBwd, moeUnpermuteBwd),
		impl(moe.MoEPermuteWithRoutingMap, moePermuteWithRoutingMap),
		impl(moe.MoEUnpermuteWithRoutingMap, moeUnpermuteWithRoutingMap),
		impl(moe.MoESortChunksFwd, moeSortChunksFwd),
		impl(moe.MoESortChunksBwd, moeSortChunksBwd),
		impl(moe.FusedMultiRowPadding, multiRow),
		impl(moe.FusedMultiRowUnpadding, multiRow),
		impl(moe.FusedTopkWithScoreFunctionFwd, fusedTopkFwd),
		impl(moe.FusedTopkWithScoreFunctionBwd, fusedTopkBwd),
		impl(moe.FusedScoreForMoEAuxLossFwd, fusedScoreFwd),
		impl(moe.FusedScoreForMoEAuxLossBwd, fusedScoreBwd),
		impl(moe.FusedMoEAuxLossFwd, fusedAuxLossFwd),
		impl(moe.FusedMoEAuxLossBwd, fusedAuxLossBwd),

		impl(embedding.EmbeddingFwd, embeddingFwd),
		impl(embedding.EmbeddingBwd, embeddingBwd),

		impl(loss.CrossEntropyFwd, crossEntropyFwd),
		impl(loss.CrossEntropyBwd, crossEntropyBwd),
		impl(loss.LinearCrossEntropyFwd, linearCrossEntropyFwd),
		impl(loss.LinearCrossEntropyBwd, linearCrossEntropyBwd),

		impl(optim.MultiTensorAdam, multiTensorAdam),
		impl(optim.MultiTensorL2Norm, multiTensorL2Norm),
		impl(optim.MultiTensorScale, multiTensorScale),
		impl(optim.MultiTensorAdamParamRemainder, multiTensorAdamParamRemainder),
		impl(optim.MultiTensorAdamFP8, multiTensorAdamFP8),
		impl(optim.MultiTensorAdamCapturable, multiTensorAdamCapturable),
		impl(optim.MultiTensorAdamCapturableMaster, multiTensorAdamCapturable),
		impl(optim.MultiTensorSGD, multiTensorSGD),
		impl(optim.MultiTensorScaleTensor, multiTensorScaleTensor),
		impl(optim.MultiTensorUnscaleL2Norm, multiTensorUnscaleL2Norm),

		impl(quant.MultiTensorComputeScaleAndScaleInv, multiTensorComputeScaleAndScaleInv),
		impl(quant.MultiTensorComputeScaleInvE8M0, multiTensorComputeScaleInvE8M0),
		impl(quant.ComputeAmax, computeAmax),
		impl(quant.FusedAmaxAndScaleUpdateAfterReduction, fusedAmaxAndScaleUpdate),
		impl(quant.Quantize, quantize),
		impl(quant.Dequantize, dequantize),
		impl(quant.BgradQuantize, bgradQuantize),
		impl(quant.MultiTensorQuantize, multiTensorQuantize),
		impl(quant.SplitQuantize, splitQuantize),
		impl(quant.GroupQuantize, groupQuantize),
		impl(quant.BgradGroupQuantize, bgradGroupQuantize),
		impl(quant.CastToFP8, castToFP8),
		impl(quant.FP8Transpose, fp8Transpose),
		impl(quant.SwapFirstDims, swapFirstDims),
		impl(quant.NVFP4DataTranspose, nvfp4DataTranspose),
		impl(quant.NVFP42DMultiTensorTranspose, nvfp42DMultiTensorTranspose),
		impl(quant.SplitsToOffsets, splitsToOffsets),
		impl(quant.FP8BlockScalingComputePartialAmax, partialAmax),
		impl(quant.FP8BlockScalingPartialCast, partialCast),
		impl(quant.MXFP8ScalingComputePartialAmax, mxfp8PartialAmax),
		impl(quant.MXFP8ScalingPartialCast, mxfp8PartialCast),
		impl(quant.NVFP42DComputePartialAmax, partialAmax),
		impl(quant.NVFP4MultiTensorComputePartialAmax, nvfp4MultiTensorPartialAmax),
		impl(quant.NVFP42DPartialCast, nvfp42DPartialCast),
		impl(quant.NVFP4MultiTensor2DPartialCast, nvfp4MultiTensor2DPartialCast),
		impl(quant.NVFP4ComputeGlobalScale, nvfp4ComputeGlobalScale),
		impl(quant.NVFP4ComputePerBlockScale, nvfp4ComputePerBlockScale),
		impl(quant.NVFP4ExpandScaleToFP8, nvfp4ExpandScaleToFP8),
		impl(quant.NVFP4FusedScale, nvfp4FusedScale),
		impl(quant.NVFP4MultiTensorFusedScale, nvfp4MultiTensorFusedScale),
	}
}
