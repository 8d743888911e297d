package ops

import "github.com/primus-fl/primus/opregistry"

// All returns the handles of every op of the catalogue.
func All() []opregistry.Handle {
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
