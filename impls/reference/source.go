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

// Source returns an impl of every op of the catalogue.
func Source() opregistry.Source {
	return opregistry.Source{
		Name:    "reference",
		Version: "1.0.0",
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
