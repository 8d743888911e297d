package flagos

import (
	"slices"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// ID is the id of each impl of the package.
const ID = "default.flagos"

// Priority ranks the impls ahead of vendors and the reference among the
// candidates that match one token of a policy.
const Priority = 150

// Source returns the impls.
func Source() opregistry.Source {
	return opregistry.Source{
		Name:    "flagos",
		Version: buildinfo.Version(),
		Impls: slices.Concat(gemmImpls(), attentionImpls(), moeImpls(), activationImpls(), softmaxImpls(), []opregistry.Impl{
			impl(ops.RMSNormFwd, rmsNormFwd),
			impl(ops.RMSNormBwd, rmsNormBwd),
			impl(ops.RMSNormBwdAdd, rmsNormBwdAdd),
			impl(ops.LayerNormFwd, layerNormFwd),
			impl(ops.LayerNormBwd, layerNormBwd),
			impl(ops.DropoutFwd, dropoutForward),
			impl(ops.DropoutBwd, dropoutBackward),
			impl(ops.FusedRopeForward, fusedRopeForward),
			impl(ops.FusedRopeBackward, fusedRopeBackward),
			impl(ops.MultiTensorAdam, multiTensorAdam),
			impl(ops.MultiTensorL2Norm, multiTensorL2Norm),
			impl(ops.MultiTensorScale, multiTensorScale),
			impl(ops.MultiTensorAdamParamRemainder, multiTensorAdamParamRemainder),
			impl(ops.MultiTensorAdamCapturable, multiTensorAdamCapturable),
			impl(ops.MultiTensorAdamCapturableMaster, multiTensorAdamCapturable),
			impl(ops.MultiTensorSGD, multiTensorSGD),
			impl(ops.MultiTensorUnscaleL2Norm, multiTensorUnscaleL2Norm),
			impl(ops.MultiTensorScaleTensor, multiTensorScaleTensor),
			impl(ops.EmbeddingFwd, embeddingFwd),
			impl(ops.EmbeddingBwd, embeddingBwd),
			impl(ops.CrossEntropyFwd, crossEntropyFwd),
			impl(ops.CrossEntropyBwd, crossEntropyBwd),
			impl(ops.ResidualAdd, residualAdd),
		}),
	}
}

func impl[A any](op *opregistry.Op[A], run opregistry.Func[A]) opregistry.Impl {
	return opregistry.Impl{
		Op: op, ID: ID, Kind: opregistry.KindFlagos, Priority: Priority, Run: run,
		Support:     opregistry.Support{DTypes: []tensor.DType{tensor.F32, tensor.BF16, tensor.F16}},
		Determinism: opregistry.DeterminismOfClass,
	}
}
