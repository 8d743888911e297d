// Package softmax has the oracles of the ops of the family softmax.
package softmax

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	softmaxops "github.com/primus-fl/primus/ops/softmax"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(softmaxops.ScaledSoftmaxForward, softmax(everyColumn)),
		host.Impl(softmaxops.ScaledSoftmaxBackward, softmaxGradient(everyColumn)),
		host.Impl(softmaxops.ScaledMaskedSoftmaxForward, maskedSoftmax),
		host.Impl(softmaxops.ScaledMaskedSoftmaxBackward, softmaxGradient(everyColumn)),
		host.Impl(softmaxops.ScaledUpperTriangMaskedSoftmaxForward, softmax(causalColumns)),
		host.Impl(softmaxops.ScaledUpperTriangMaskedSoftmaxBackward, softmaxGradient(causalColumns)),
		host.Impl(softmaxops.ScaledAlignedCausalMaskedSoftmaxForward, softmax(causalColumns)),
		host.Impl(softmaxops.ScaledAlignedCausalMaskedSoftmaxBackward, softmaxGradient(causalColumns)),
	}
}
