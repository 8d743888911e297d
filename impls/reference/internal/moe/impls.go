// Package moe has the oracles of the ops of the family moe.
package moe

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(moe.MoEPermuteFwd, moePermuteFwd),
		host.Impl(moe.MoEPermuteBwd, moeUnpermute),
		host.Impl(moe.MoEUnpermuteFwd, moeUnpermute),
		host.Impl(moe.MoEUnpermuteBwd, moeUnpermuteBwd),
		host.Impl(moe.MoEPermuteWithRoutingMap, moePermuteWithRoutingMap),
		host.Impl(moe.MoEUnpermuteWithRoutingMap, moeUnpermuteWithRoutingMap),
		host.Impl(moe.MoESortChunksFwd, moeSortChunksFwd),
		host.Impl(moe.MoESortChunksBwd, moeSortChunksBwd),
		host.Impl(moe.FusedMultiRowPadding, multiRow),
		host.Impl(moe.FusedMultiRowUnpadding, multiRow),
		host.Impl(moe.FusedTopkWithScoreFunctionFwd, fusedTopkFwd),
		host.Impl(moe.FusedTopkWithScoreFunctionBwd, fusedTopkBwd),
		host.Impl(moe.FusedScoreForMoEAuxLossFwd, fusedScoreFwd),
		host.Impl(moe.FusedScoreForMoEAuxLossBwd, fusedScoreBwd),
		host.Impl(moe.FusedMoEAuxLossFwd, fusedAuxLossFwd),
		host.Impl(moe.FusedMoEAuxLossBwd, fusedAuxLossBwd),
	}
}
