package flagos

import (
	"slices"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	ropeops "github.com/primus-fl/primus/ops/rope"
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
			impl(norm.RMSNormFwd, rmsNormFwd),
			impl(norm.RMSNormBwd, rmsNormBwd),
			impl(norm.RMSNormBwdAdd, rmsNormBwdAdd),
			impl(norm.LayerNormFwd, layerNormFwd),
			impl(norm.LayerNormBwd, layerNormBwd),
			impl(dropout.DropoutFwd, dropoutForward),
			impl(dropout.DropoutBwd, dropoutBackward),
			impl(ropeops.FusedRopeForward, fusedRopeForward),
			impl(ropeops.FusedRopeBackward, fusedRopeBackward),
			impl(optim.MultiTensorAdam, multiTensorAdam),
			impl(optim.MultiTensorL2Norm, multiTensorL2Norm),
			impl(optim.MultiTensorScale, multiTensorScale),
			impl(optim.MultiTensorAdamParamRemainder, multiTensorAdamParamRemainder),
			impl(optim.MultiTensorAdamCapturable, multiTensorAdamCapturable),
			impl(optim.MultiTensorAdamCapturableMaster, multiTensorAdamCapturable),
			impl(optim.MultiTensorSGD, multiTensorSGD),
			impl(optim.MultiTensorUnscaleL2Norm, multiTensorUnscaleL2Norm),
			impl(optim.MultiTensorScaleTensor, multiTensorScaleTensor),
			impl(embedding.EmbeddingFwd, embeddingFwd),
			impl(embedding.EmbeddingBwd, embeddingBwd),
			impl(loss.CrossEntropyFwd, crossEntropyFwd),
			impl(loss.CrossEntropyBwd, crossEntropyBwd),
			impl(norm.ResidualAdd, residualAdd),
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
