package reference

import (
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

// ID is the id of each impl of the package.
const ID = "reference.go"

// Priority ranks the impls behind those of every other kind.
const Priority = 50

// Source returns an impl of every op of the catalogue that computes something.
func Source() opregistry.Source {
	return opregistry.Source{
		Name:    "reference",
		Version: "1.0.0",
		Impls: []opregistry.Impl{
			impl(ops.GenericGemm, genericGemm),
			impl(ops.RMSNormFwd, rmsnormFwd),
			impl(ops.RMSNormBwd, rmsnormBwd),
			impl(ops.SwiGLU, swiglu),
			impl(ops.DSwiGLU, dswiglu),
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

// impl wraps a function that needs nothing but its arguments.
func impl[A any](op *opregistry.Op[A], run func(A) error) opregistry.Impl {
	return opregistry.Impl{
		Op:       op,
		ID:       ID,
		Kind:     opregistry.KindReference,
		Priority: Priority,
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
