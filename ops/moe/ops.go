package moe

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		MoEPermuteFwd, MoEPermuteBwd, MoEUnpermuteFwd, MoEUnpermuteBwd,
		MoEPermuteWithRoutingMap, MoEUnpermuteWithRoutingMap,
		MoESortChunksFwd, MoESortChunksBwd,
		FusedMultiRowPadding, FusedMultiRowUnpadding,
		FusedTopkWithScoreFunctionFwd, FusedTopkWithScoreFunctionBwd,
		FusedScoreForMoEAuxLossFwd, FusedScoreForMoEAuxLossBwd,
		FusedMoEAuxLossFwd, FusedMoEAuxLossBwd,
	}
}
