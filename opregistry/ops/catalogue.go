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
	}
}
