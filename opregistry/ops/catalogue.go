package ops

import "github.com/primus-fl/primus/opregistry"

// All returns the handles of every op of the catalogue.
func All() []opregistry.Handle { return append(computed(), Declared()...) }

// computed returns the ops that have an implementation in this project.
func computed() []opregistry.Handle {
	return []opregistry.Handle{
		GenericGemm,
		RMSNormFwd, RMSNormBwd,
		SwiGLU, DSwiGLU,
		FusedAttnFwd, FusedAttnBwd,
		FusedRopeForward, FusedRopeBackward,
		MultiTensorAdam, MultiTensorL2Norm, MultiTensorScale,
		EmbeddingFwd, EmbeddingBwd,
		CrossEntropyFwd, CrossEntropyBwd,
		ResidualAdd,
		RMSNormBwdAdd, LayerNormFwd, LayerNormBwd,
		GELU, QGELU, ReLU, SReLU, SiLU,
		GEGLU, GLU, QGEGLU, ReGLU, SReGLU, ClampedSwiGLU,
		DGELU, DQGELU, DReLU, DSReLU, DSiLU,
		DGEGLU, DGLU, DQGEGLU, DReGLU, DSReGLU, ClampedDSwiGLU,
		DBiasDGELU, DBiasDSiLU, DBiasDReLU, DBiasDQGELU, DBiasDSReLU,
		ScaledSoftmaxForward, ScaledSoftmaxBackward,
		ScaledMaskedSoftmaxForward, ScaledMaskedSoftmaxBackward,
		ScaledUpperTriangMaskedSoftmaxForward, ScaledUpperTriangMaskedSoftmaxBackward,
		ScaledAlignedCausalMaskedSoftmaxForward, ScaledAlignedCausalMaskedSoftmaxBackward,
		FusedQKVRopeForward, FusedQKVRopeBackward,
		DropoutFwd, DropoutBwd,

		MultiTensorAdamParamRemainder, MultiTensorAdamFP8,
		MultiTensorAdamCapturable, MultiTensorAdamCapturableMaster,
		MultiTensorSGD, MultiTensorScaleTensor, MultiTensorUnscaleL2Norm,
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

		TEGeneralGroupedGemm, TEGeneralGroupedGemmForGroupedTensor, TEGeneralGroupedGemmForDiscreteIn, TEGeneralGroupedGemmForDiscreteOut,
		MoEPermuteFwd, MoEPermuteBwd, MoEUnpermuteFwd, MoEUnpermuteBwd,
		MoEPermuteWithRoutingMap, MoEUnpermuteWithRoutingMap,
		MoESortChunksFwd, MoESortChunksBwd,
		FusedMultiRowPadding, FusedMultiRowUnpadding,
		FusedTopkWithScoreFunctionFwd, FusedTopkWithScoreFunctionBwd,
		FusedScoreForMoEAuxLossFwd, FusedScoreForMoEAuxLossBwd,
		FusedMoEAuxLossFwd, FusedMoEAuxLossBwd,
		FAPrepareFwd, FAPrepareBwd, CopyToKVCache, ConvertTHDToBSHD, ConvertBSHDToTHD, GatedDeltaNetForward,
		THDGetPartitionedIndices, THDReadHalfTensor, THDReadSecondHalfLSE,
		THDSecondHalfLSECorrection, THDOutCorrection, THDGradCorrection,
	}
}

// Declared returns the handles of the ops that have no implementation in this project: set-up,
// queries and memory layout of one vendor's libraries, which only that vendor can implement.
func Declared() []opregistry.Handle {
	return []opregistry.Handle{
		SwizzleScalesForGemm, GroupedSwizzleForGemm, CreateFP8TensorMeta,
		BulkOverlapAGWithExternalGemm, CreateCommOverlapHelper, CreateCommOverlap, CreateCommOverlapP2P,
		InitNVSHMEMBackend, CreateNVSHMEMTensor, NVSHMEMSendOnCurrentStream, NVSHMEMWaitOnCurrentStream, NVSHMEMFinalize,
		GetCuBLASLtVersion, GetCuDNNVersion, GetNumCuBLASStreams,
		ConvertHostPointersToTensor, GetDevicePointerForDataAndScales,
		GetAttentionBackend, GetFusedAttnBackend,
	}
}
