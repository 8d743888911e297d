package reference

import (
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

// ID is the id of each impl of the package.
const ID = "reference.go"

// Priority ranks the impls after those of every other kind.
const Priority = 50

// Source returns an impl of every op of the catalogue that computes something.
func Source() opregistry.Source {
	return opregistry.Source{
		Name:    "reference",
		Version: buildinfo.Version(),
		Impls: []opregistry.Impl{
			impl(ops.GenericGemm, genericGemm),
			impl(ops.RMSNormFwd, rmsnormFwd),
			impl(ops.RMSNormBwd, rmsnormBwd),
			impl(ops.SwiGLU, gated(silu)),
			impl(ops.DSwiGLU, gatedGradient(silu, siluDerivative)),
			impl(ops.FusedAttnFwd, fusedAttnFwd),
			impl(ops.FusedAttnBwd, fusedAttnBwd),
			impl(ops.FusedRopeForward, fusedRopeForward),
			impl(ops.FusedRopeBackward, fusedRopeBackward),
			impl(ops.MultiTensorAdam, multiTensorAdam),
			impl(ops.MultiTensorL2Norm, multiTensorL2Norm),
			impl(ops.MultiTensorScale, multiTensorScale),
			impl(ops.EmbeddingFwd, embeddingFwd),
			impl(ops.EmbeddingBwd, embeddingBwd),
			impl(ops.CrossEntropyFwd, crossEntropyFwd),
			impl(ops.CrossEntropyBwd, crossEntropyBwd),
			impl(ops.ResidualAdd, residualAdd),
			impl(ops.RMSNormBwdAdd, rmsnormBwdAdd),
			impl(ops.LayerNormFwd, layernormFwd),
			impl(ops.LayerNormBwd, layernormBwd),
			impl(ops.GELU, elementwise(gelu)),
			impl(ops.QGELU, elementwise(qgelu)),
			impl(ops.ReLU, elementwise(relu)),
			impl(ops.SReLU, elementwise(srelu)),
			impl(ops.SiLU, elementwise(silu)),
			impl(ops.GEGLU, gated(gelu)),
			impl(ops.GLU, gated(sigmoid)),
			impl(ops.QGEGLU, gated(qgelu)),
			impl(ops.ReGLU, gated(relu)),
			impl(ops.SReGLU, gated(srelu)),
			impl(ops.ClampedSwiGLU, clampedSwiGLU),
			impl(ops.DGELU, elementwiseGradient(geluDerivative)),
			impl(ops.DQGELU, elementwiseGradient(qgeluDerivative)),
			impl(ops.DReLU, elementwiseGradient(reluDerivative)),
			impl(ops.DSReLU, elementwiseGradient(sreluDerivative)),
			impl(ops.DSiLU, elementwiseGradient(siluDerivative)),
			impl(ops.DGEGLU, gatedGradient(gelu, geluDerivative)),
			impl(ops.DGLU, gatedGradient(sigmoid, sigmoidDerivative)),
			impl(ops.DQGEGLU, gatedGradient(qgelu, qgeluDerivative)),
			impl(ops.DReGLU, gatedGradient(relu, reluDerivative)),
			impl(ops.DSReGLU, gatedGradient(srelu, sreluDerivative)),
			impl(ops.ClampedDSwiGLU, clampedDSwiGLU),
			impl(ops.DBiasDGELU, biasGradient(geluDerivative)),
			impl(ops.DBiasDSiLU, biasGradient(siluDerivative)),
			impl(ops.DBiasDReLU, biasGradient(reluDerivative)),
			impl(ops.DBiasDQGELU, biasGradient(qgeluDerivative)),
			impl(ops.DBiasDSReLU, biasGradient(sreluDerivative)),
			impl(ops.ScaledSoftmaxForward, softmax(everyColumn)),
			impl(ops.ScaledSoftmaxBackward, softmaxGradient(everyColumn)),
			impl(ops.ScaledMaskedSoftmaxForward, maskedSoftmax),
			impl(ops.ScaledMaskedSoftmaxBackward, softmaxGradient(everyColumn)),
			impl(ops.ScaledUpperTriangMaskedSoftmaxForward, softmax(causalColumns)),
			impl(ops.ScaledUpperTriangMaskedSoftmaxBackward, softmaxGradient(causalColumns)),
			impl(ops.ScaledAlignedCausalMaskedSoftmaxForward, softmax(causalColumns)),
			impl(ops.ScaledAlignedCausalMaskedSoftmaxBackward, softmaxGradient(causalColumns)),
			impl(ops.FusedQKVRopeForward, fusedQKVRopeForward),
			impl(ops.FusedQKVRopeBackward, fusedQKVRopeBackward),
			impl(ops.DropoutFwd, dropoutFwd),
			impl(ops.DropoutBwd, dropoutBwd),

			impl(ops.MultiTensorAdamParamRemainder, multiTensorAdamParamRemainder),
			impl(ops.MultiTensorAdamFP8, multiTensorAdamFP8),
			impl(ops.MultiTensorAdamCapturable, multiTensorAdamCapturable),
			impl(ops.MultiTensorAdamCapturableMaster, multiTensorAdamCapturable),
			impl(ops.MultiTensorSGD, multiTensorSGD),
			impl(ops.MultiTensorScaleTensor, multiTensorScaleTensor),
			impl(ops.MultiTensorUnscaleL2Norm, multiTensorUnscaleL2Norm),
			impl(ops.MultiTensorComputeScaleAndScaleInv, multiTensorComputeScaleAndScaleInv),
			impl(ops.MultiTensorComputeScaleInvE8M0, multiTensorComputeScaleInvE8M0),
			impl(ops.ComputeAmax, computeAmax),
			impl(ops.FusedAmaxAndScaleUpdateAfterReduction, fusedAmaxAndScaleUpdate),
			impl(ops.Quantize, quantize),
			impl(ops.Dequantize, dequantize),
			impl(ops.BgradQuantize, bgradQuantize),
			impl(ops.MultiTensorQuantize, multiTensorQuantize),
			impl(ops.SplitQuantize, splitQuantize),
			impl(ops.GroupQuantize, groupQuantize),
			impl(ops.BgradGroupQuantize, bgradGroupQuantize),
			impl(ops.CastToFP8, castToFP8),
			impl(ops.FP8Transpose, fp8Transpose),
			impl(ops.SwapFirstDims, swapFirstDims),
			impl(ops.NVFP4DataTranspose, nvfp4DataTranspose),
			impl(ops.NVFP42DMultiTensorTranspose, nvfp42DMultiTensorTranspose),
			impl(ops.SplitsToOffsets, splitsToOffsets),
			impl(ops.FP8BlockScalingComputePartialAmax, partialAmax),
			impl(ops.FP8BlockScalingPartialCast, partialCast),
			impl(ops.MXFP8ScalingComputePartialAmax, mxfp8PartialAmax),
			impl(ops.MXFP8ScalingPartialCast, mxfp8PartialCast),
			impl(ops.NVFP42DComputePartialAmax, partialAmax),
			impl(ops.NVFP4MultiTensorComputePartialAmax, nvfp4MultiTensorPartialAmax),
			impl(ops.NVFP42DPartialCast, nvfp42DPartialCast),
			impl(ops.NVFP4MultiTensor2DPartialCast, nvfp4MultiTensor2DPartialCast),
			impl(ops.NVFP4ComputeGlobalScale, nvfp4ComputeGlobalScale),
			impl(ops.NVFP4ComputePerBlockScale, nvfp4ComputePerBlockScale),
			impl(ops.NVFP4ExpandScaleToFP8, nvfp4ExpandScaleToFP8),
			impl(ops.NVFP4FusedScale, nvfp4FusedScale),
			impl(ops.NVFP4MultiTensorFusedScale, nvfp4MultiTensorFusedScale),

			impl(ops.TEGeneralGroupedGemm, teGeneralGroupedGemm),
			impl(ops.TEGeneralGroupedGemmForGroupedTensor, groupedGemm),
			impl(ops.TEGeneralGroupedGemmForDiscreteIn, groupedGemm),
			impl(ops.TEGeneralGroupedGemmForDiscreteOut, groupedGemm),
			impl(ops.MoEPermuteFwd, moePermuteFwd),
			impl(ops.MoEPermuteBwd, moeUnpermute),
			impl(ops.MoEUnpermuteFwd, moeUnpermute),
			impl(ops.MoEUnpermuteBwd, moeUnpermuteBwd),
			impl(ops.MoEPermuteWithRoutingMap, moePermuteWithRoutingMap),
			impl(ops.MoEUnpermuteWithRoutingMap, moeUnpermuteWithRoutingMap),
			impl(ops.MoESortChunksFwd, moeSortChunksFwd),
			impl(ops.MoESortChunksBwd, moeSortChunksBwd),
			impl(ops.FusedMultiRowPadding, multiRow),
			impl(ops.FusedMultiRowUnpadding, multiRow),
			impl(ops.FusedTopkWithScoreFunctionFwd, fusedTopkFwd),
			impl(ops.FusedTopkWithScoreFunctionBwd, fusedTopkBwd),
			impl(ops.FusedScoreForMoEAuxLossFwd, fusedScoreFwd),
			impl(ops.FusedScoreForMoEAuxLossBwd, fusedScoreBwd),
			impl(ops.FusedMoEAuxLossFwd, fusedAuxLossFwd),
			impl(ops.FusedMoEAuxLossBwd, fusedAuxLossBwd),
			impl(ops.FAPrepareFwd, faPrepareFwd),
			impl(ops.FAPrepareBwd, faPrepareBwd),
			impl(ops.CopyToKVCache, copyToKVCache),
			impl(ops.ConvertTHDToBSHD, convertTHDToBSHD),
			impl(ops.ConvertBSHDToTHD, convertBSHDToTHD),
			impl(ops.GatedDeltaNetForward, gatedDeltaNetForward),
			impl(ops.THDGetPartitionedIndices, thdGetPartitionedIndices),
			impl(ops.THDReadHalfTensor, thdReadHalfTensor),
			impl(ops.THDReadSecondHalfLSE, thdReadSecondHalfLSE),
			impl(ops.THDSecondHalfLSECorrection, thdSecondHalfLSECorrection),
			impl(ops.THDOutCorrection, thdOutCorrection),
			impl(ops.THDGradCorrection, thdGradCorrection),
		},
	}
}

// impl makes an Impl from a function that needs only the arguments of a call.
func impl[A any](op *opregistry.Op[A], run func(A) error) opregistry.Impl {
	return opregistry.Impl{
		Op:       op,
		ID:       ID,
		Kind:     opregistry.KindReference,
		Priority: Priority,
		// The bits are equal on one class of CPU only, because math.Exp and similar functions use
		// FMA where the CPU has it.
		Determinism: opregistry.DeterminismOfClass,
		Run: func(_ *opregistry.Exec, a A) error {
			for _, o := range op.Operands(a) {
				if d := o.Tensor.Device(); d.Type != device.TypeCPU {
					return opregistry.Unsupported("operand %q lies on %v, the reference reads host memory only", o.Name, d)
				}
			}
			return run(a)
		},
	}
}
