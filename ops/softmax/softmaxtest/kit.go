// Package softmaxtest has the conformance cases of package softmax.
package softmaxtest

import (
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package softmax.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[softmax.SoftmaxArgs]{Op: softmax.ScaledSoftmaxForward, Cases: softmaxCases}.Suite(),
			opstest.Spec[softmax.SoftmaxBackwardArgs]{Op: softmax.ScaledSoftmaxBackward, Cases: softmaxBackwardCases}.Suite(),
			opstest.Spec[softmax.ScaledMaskedSoftmaxForwardArgs]{Op: softmax.ScaledMaskedSoftmaxForward, Cases: maskedSoftmaxCases}.Suite(),
			opstest.Spec[softmax.SoftmaxBackwardArgs]{Op: softmax.ScaledMaskedSoftmaxBackward, Cases: softmaxBackwardCases}.Suite(),
			opstest.Spec[softmax.SoftmaxArgs]{Op: softmax.ScaledUpperTriangMaskedSoftmaxForward, Cases: triangularSoftmaxCases}.Suite(),
			opstest.Spec[softmax.SoftmaxBackwardArgs]{Op: softmax.ScaledUpperTriangMaskedSoftmaxBackward, Cases: triangularSoftmaxBackwardCases}.Suite(),
			opstest.Spec[softmax.SoftmaxArgs]{Op: softmax.ScaledAlignedCausalMaskedSoftmaxForward, Cases: alignedSoftmaxCases}.Suite(),
			opstest.Spec[softmax.SoftmaxBackwardArgs]{Op: softmax.ScaledAlignedCausalMaskedSoftmaxBackward, Cases: alignedSoftmaxBackwardCases}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: softmax.ScaledSoftmaxBackward, Forward: softmax.ScaledSoftmaxForward, Cases: softmaxGradCases(softmax.ScaledSoftmaxForward, softmax.ScaledSoftmaxBackward, 2, 2, 3, 4)},
			{Backward: softmax.ScaledUpperTriangMaskedSoftmaxBackward, Forward: softmax.ScaledUpperTriangMaskedSoftmaxForward, Cases: softmaxGradCases(softmax.ScaledUpperTriangMaskedSoftmaxForward, softmax.ScaledUpperTriangMaskedSoftmaxBackward, 2, 4, 4)},
			{Backward: softmax.ScaledAlignedCausalMaskedSoftmaxBackward, Forward: softmax.ScaledAlignedCausalMaskedSoftmaxForward, Cases: softmaxGradCases(softmax.ScaledAlignedCausalMaskedSoftmaxForward, softmax.ScaledAlignedCausalMaskedSoftmaxBackward, 1, 2, 5, 3)},
			{Backward: softmax.ScaledMaskedSoftmaxBackward, Forward: softmax.ScaledMaskedSoftmaxForward, Cases: maskedSoftmaxGradCases},
		},
	}
}
