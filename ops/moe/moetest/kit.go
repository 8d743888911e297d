// Package moetest has the conformance cases of package moe.
package moetest

import (
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package moe.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[moe.MoEPermuteFwdArgs]{Op: moe.MoEPermuteFwd, Cases: moePermuteFwdCases}.Suite(),
			opstest.Spec[moe.MoEUnpermuteArgs]{Op: moe.MoEPermuteBwd, Cases: moeUnpermuteCases, Refresh: moeUnpermuteRefresh}.Suite(),
			opstest.Spec[moe.MoEUnpermuteArgs]{Op: moe.MoEUnpermuteFwd, Cases: moeUnpermuteCases, Refresh: moeUnpermuteRefresh}.Suite(),
			opstest.Spec[moe.MoEUnpermuteBwdArgs]{Op: moe.MoEUnpermuteBwd, Cases: moeUnpermuteBwdCases, Refresh: moeUnpermuteBwdRefresh}.Suite(),
			opstest.Spec[moe.MoEPermuteWithRoutingMapArgs]{Op: moe.MoEPermuteWithRoutingMap, Cases: routingMapCases}.Suite(),
			opstest.Spec[moe.MoEUnpermuteWithRoutingMapArgs]{Op: moe.MoEUnpermuteWithRoutingMap, Cases: unpermuteMapCases, Refresh: unpermuteMapRefresh}.Suite(),
			opstest.Spec[moe.MoESortChunksFwdArgs]{Op: moe.MoESortChunksFwd, Cases: sortChunksCases}.Suite(),
			opstest.Spec[moe.MoESortChunksBwdArgs]{Op: moe.MoESortChunksBwd, Cases: sortChunksBwdCases, Refresh: sortChunksRefresh}.Suite(),
			opstest.Spec[moe.MultiRowPaddingArgs]{Op: moe.FusedMultiRowPadding, Cases: multiRowCases(false)}.Suite(),
			opstest.Spec[moe.MultiRowPaddingArgs]{Op: moe.FusedMultiRowUnpadding, Cases: multiRowCases(true)}.Suite(),
			opstest.Spec[moe.FusedTopkWithScoreFunctionFwdArgs]{Op: moe.FusedTopkWithScoreFunctionFwd, Cases: topkCases}.Suite(),
			opstest.Spec[moe.FusedTopkWithScoreFunctionBwdArgs]{Op: moe.FusedTopkWithScoreFunctionBwd, Cases: topkBwdCases, Refresh: topkRefresh}.Suite(),
			opstest.Spec[moe.FusedScoreForMoEAuxLossFwdArgs]{Op: moe.FusedScoreForMoEAuxLossFwd, Cases: scoreCases}.Suite(),
			opstest.Spec[moe.FusedScoreForMoEAuxLossBwdArgs]{Op: moe.FusedScoreForMoEAuxLossBwd, Cases: scoreBwdCases, Refresh: scoreRefresh}.Suite(),
			opstest.Spec[moe.FusedMoEAuxLossFwdArgs]{Op: moe.FusedMoEAuxLossFwd, Cases: auxLossCases}.Suite(),
			opstest.Spec[moe.FusedMoEAuxLossBwdArgs]{Op: moe.FusedMoEAuxLossBwd, Cases: auxLossBwdCases, Refresh: auxLossRefresh}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: moe.MoEPermuteBwd, Forward: moe.MoEPermuteFwd, Cases: moePermuteGradCases},
			{Backward: moe.MoEUnpermuteBwd, Forward: moe.MoEUnpermuteFwd, Cases: moeUnpermuteGradCases},
			{Backward: moe.MoEUnpermuteWithRoutingMap, Forward: moe.MoEPermuteWithRoutingMap, Cases: routingMapGradCases},
			{Backward: moe.MoESortChunksBwd, Forward: moe.MoESortChunksFwd, Cases: sortChunksGradCases},
			{Backward: moe.FusedTopkWithScoreFunctionBwd, Forward: moe.FusedTopkWithScoreFunctionFwd, Cases: topkGradCases},
			{Backward: moe.FusedScoreForMoEAuxLossBwd, Forward: moe.FusedScoreForMoEAuxLossFwd, Cases: scoreGradCases},
			{Backward: moe.FusedMoEAuxLossBwd, Forward: moe.FusedMoEAuxLossFwd, Cases: auxLossGradCases},
		},
	}
}
