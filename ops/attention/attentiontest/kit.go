// Package attentiontest has the conformance cases of package attention.
package attentiontest

import (
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package attention.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[attention.FusedAttnFwdArgs]{Op: attention.FusedAttnFwd, Cases: attnFwdCases}.Suite(),
			opstest.Spec[attention.FusedAttnBwdArgs]{Op: attention.FusedAttnBwd, Cases: attnBwdCases, Refresh: attnRefresh}.Suite(),
			opstest.Spec[attention.FAPrepareFwdArgs]{Op: attention.FAPrepareFwd, Cases: faPrepareFwdCases}.Suite(),
			opstest.Spec[attention.FAPrepareBwdArgs]{Op: attention.FAPrepareBwd, Cases: faPrepareBwdCases}.Suite(),
			opstest.Spec[attention.CopyToKVCacheArgs]{Op: attention.CopyToKVCache, Cases: kvCacheCases}.Suite(),
			opstest.Spec[attention.ConvertTHDArgs]{Op: attention.ConvertTHDToBSHD, Cases: convertTHDCases(false)}.Suite(),
			opstest.Spec[attention.ConvertTHDArgs]{Op: attention.ConvertBSHDToTHD, Cases: convertTHDCases(true)}.Suite(),
			opstest.Spec[attention.GatedDeltaNetForwardArgs]{Op: attention.GatedDeltaNetForward, Cases: deltaNetCases}.Suite(),
			opstest.Spec[attention.THDGetPartitionedIndicesArgs]{Op: attention.THDGetPartitionedIndices, Cases: partitionCases}.Suite(),
			opstest.Spec[attention.THDReadHalfTensorArgs]{Op: attention.THDReadHalfTensor, Cases: readHalfCases}.Suite(),
			opstest.Spec[attention.THDReadSecondHalfLSEArgs]{Op: attention.THDReadSecondHalfLSE, Cases: readLSECases}.Suite(),
			opstest.Spec[attention.THDSecondHalfLSECorrectionArgs]{Op: attention.THDSecondHalfLSECorrection, Cases: correctLSECases}.Suite(),
			opstest.Spec[attention.THDOutCorrectionArgs]{Op: attention.THDOutCorrection, Cases: outCorrectionCases}.Suite(),
			opstest.Spec[attention.THDGradCorrectionArgs]{Op: attention.THDGradCorrection, Cases: gradCorrectionCases}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: attention.FusedAttnBwd, Forward: attention.FusedAttnFwd, Cases: attnGradCases},
			{Backward: attention.FAPrepareBwd, Forward: attention.FAPrepareFwd, Cases: faPrepareGradCases},
		},
	}
}
