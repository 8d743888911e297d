// Package attention has the oracles of the ops of the family attention.
package attention

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	attentionops "github.com/primus-fl/primus/ops/attention"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(attentionops.FusedAttnFwd, fusedAttnFwd),
		host.Impl(attentionops.FusedAttnBwd, fusedAttnBwd),
		host.Impl(attentionops.FAPrepareFwd, faPrepareFwd),
		host.Impl(attentionops.FAPrepareBwd, faPrepareBwd),
		host.Impl(attentionops.CopyToKVCache, copyToKVCache),
		host.Impl(attentionops.ConvertTHDToBSHD, convertTHDToBSHD),
		host.Impl(attentionops.ConvertBSHDToTHD, convertBSHDToTHD),
		host.Impl(attentionops.GatedDeltaNetForward, gatedDeltaNetForward),
		host.Impl(attentionops.THDGetPartitionedIndices, thdGetPartitionedIndices),
		host.Impl(attentionops.THDReadHalfTensor, thdReadHalfTensor),
		host.Impl(attentionops.THDReadSecondHalfLSE, thdReadSecondHalfLSE),
		host.Impl(attentionops.THDSecondHalfLSECorrection, thdSecondHalfLSECorrection),
		host.Impl(attentionops.THDOutCorrection, thdOutCorrection),
		host.Impl(attentionops.THDGradCorrection, thdGradCorrection),
	}
}
