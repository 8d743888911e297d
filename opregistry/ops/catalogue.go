package ops

import "github.com/primus-fl/primus/opregistry"

// All returns the handles of every op of the catalogue.
func All() []opregistry.Handle { return append(computed(), Declared()...) }

// computed are the ops that compute something.
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

// Declared returns the handles of the ops that have no implementation in this
// project: set-up, queries and memory layout of one vendor's libraries, which only
// that vendor can implement.
func Declared() []opregistry.Handle {
	return []opregistry.Handle{
		GetAttentionBackend, GetFusedAttnBackend,
	}
}
