package attention

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		FusedAttnFwd, FusedAttnBwd,
		FAPrepareFwd, FAPrepareBwd, CopyToKVCache, ConvertTHDToBSHD, ConvertBSHDToTHD, GatedDeltaNetForward,
		THDGetPartitionedIndices, THDReadHalfTensor, THDReadSecondHalfLSE,
		THDSecondHalfLSECorrection, THDOutCorrection, THDGradCorrection,
	}
}
