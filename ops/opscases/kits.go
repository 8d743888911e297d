package opscases

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/collective"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// Attention returns the cases of the ops of package attention.
func Attention() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[attention.FusedAttnFwdArgs]{Op: attention.FusedAttnFwd, Cases: attnFwdCases, Models: attnFwdModels}.Suite(),
			opstest.Spec[attention.FusedAttnBwdArgs]{Op: attention.FusedAttnBwd, Cases: attnBwdCases, Refresh: attnRefresh, Models: attnBwdModels}.Suite(),
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

// Collective returns the cases of the ops of package collective.
func Collective() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[collective.AllReduceArgs]{Op: collective.AllReduce, Cases: allReduceCases, Models: allReduceModels}.Suite(),
			opstest.Spec[collective.ReduceArgs]{Op: collective.Reduce, Cases: reduceCases}.Suite(),
			opstest.Spec[collective.ReduceScatterArgs]{Op: collective.ReduceScatter, Cases: reduceScatterCases}.Suite(),
			opstest.Spec[collective.AllGatherArgs]{Op: collective.AllGather, Cases: allGatherCases, Bitwise: true}.Suite(),
			opstest.Spec[collective.BroadcastArgs]{Op: collective.Broadcast, Cases: broadcastCases, Bitwise: true}.Suite(),
			opstest.Spec[collective.AllToAllArgs]{Op: collective.AllToAll, Cases: allToAllCases, Bitwise: true}.Suite(),
			opstest.Spec[collective.BarrierArgs]{Op: collective.Barrier, Cases: barrierCases}.Suite(),
		},
	}
}

var (
	alone   = collective.Group{Ranks: 1}
	shapes  = [][]int{{}, {1}, {7}, {3, 5}, {2, 0, 3}, {1025}}
	reduced = []collective.Reduction{collective.Sum, collective.Max, collective.Min, collective.Avg}
)

// reductions makes a case for each shape and reduction, and one in place.
func reductions[A any](d tensor.DType, make func(in, out *tensor.Tensor, r collective.Reduction) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	for _, shape := range shapes {
		for _, r := range reduced {
			cases = append(cases, opstest.Case[A]{Name: fmt.Sprintf("%v/%v", tensor.Shape(shape), r), Make: func(s *opstest.Stage) A {
				return make(s.In(opstest.Dense, d, shape...), s.Out(opstest.Dense, d, shape...), r)
			}})
		}
	}
	return cases
}

func allReduceCases(d tensor.DType) []opstest.Case[collective.AllReduceArgs] {
	of := func(in, out *tensor.Tensor, r collective.Reduction) collective.AllReduceArgs {
		return collective.AllReduceArgs{Input: in, Output: out, Reduction: r, Group: alone}
	}
	return append(reductions(d, of), opstest.Case[collective.AllReduceArgs]{Name: "in_place", Make: func(s *opstest.Stage) collective.AllReduceArgs {
		x := s.In(opstest.Dense, d, 4, 9)
		return of(x, x, collective.Sum)
	}})
}

func reduceCases(d tensor.DType) []opstest.Case[collective.ReduceArgs] {
	return reductions(d, func(in, out *tensor.Tensor, r collective.Reduction) collective.ReduceArgs {
		return collective.ReduceArgs{Input: in, Output: out, Reduction: r, Group: alone}
	})
}

func reduceScatterCases(d tensor.DType) []opstest.Case[collective.ReduceScatterArgs] {
	return reductions(d, func(in, out *tensor.Tensor, r collective.Reduction) collective.ReduceScatterArgs {
		return collective.ReduceScatterArgs{Input: in, Output: out, Reduction: r, Group: alone}
	})
}

// moves makes a case for each shape.
func moves[A any](d tensor.DType, make func(in, out *tensor.Tensor) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	for _, shape := range shapes {
		cases = append(cases, opstest.Case[A]{Name: tensor.Shape(shape).String(), Make: func(s *opstest.Stage) A {
			return make(s.In(opstest.Dense, d, shape...), s.Out(opstest.Dense, d, shape...))
		}})
	}
	return cases
}

func allGatherCases(d tensor.DType) []opstest.Case[collective.AllGatherArgs] {
	return moves(d, func(in, out *tensor.Tensor) collective.AllGatherArgs {
		return collective.AllGatherArgs{Input: in, Output: out, Group: alone}
	})
}

func broadcastCases(d tensor.DType) []opstest.Case[collective.BroadcastArgs] {
	return moves(d, func(in, _ *tensor.Tensor) collective.BroadcastArgs {
		return collective.BroadcastArgs{Buffer: in, Group: alone}
	})
}

func allToAllCases(d tensor.DType) []opstest.Case[collective.AllToAllArgs] {
	return moves(d, func(in, out *tensor.Tensor) collective.AllToAllArgs {
		return collective.AllToAllArgs{Input: in, Output: out, Group: alone}
	})
}

func barrierCases(tensor.DType) []opstest.Case[collective.BarrierArgs] {
	return []opstest.Case[collective.BarrierArgs]{{Name: "alone", Make: func(*opstest.Stage) collective.BarrierArgs {
		return collective.BarrierArgs{Group: alone}
	}}}
}

// Dropout returns the cases of the ops of package dropout.
func Dropout() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[dropoutops.DropoutFwdArgs]{Op: dropoutops.DropoutFwd, Cases: dropoutFwdCases, Models: perToken(hidden, dropoutFwdArgs)}.Suite(),
			opstest.Spec[dropoutops.DropoutBwdArgs]{Op: dropoutops.DropoutBwd, Cases: dropoutBwdCases, Refresh: dropoutRefresh, Models: perToken(hidden, dropoutBwdArgs)}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: dropoutops.DropoutBwd, Forward: dropoutops.DropoutFwd, Cases: dropoutGradCases},
		},
	}
}

// Embedding returns the cases of the ops of package embedding.
func Embedding() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[embedding.EmbeddingFwdArgs]{Op: embedding.EmbeddingFwd, Cases: embeddingFwdCases, Models: embeddingFwdModels}.Suite(),
			opstest.Spec[embedding.EmbeddingBwdArgs]{Op: embedding.EmbeddingBwd, Cases: embeddingBwdCases, Models: embeddingBwdModels}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: embedding.EmbeddingBwd, Forward: embedding.EmbeddingFwd, Cases: embeddingGradCases},
		},
	}
}

// Gemm returns the cases of the ops of package gemm.
func Gemm() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[gemm.GenericGemmArgs]{Op: gemm.GenericGemm, Cases: gemmCases, Models: gemmModels, Invariants: gemmInvariants}.Suite(),
			opstest.Spec[gemm.TEGeneralGroupedGemmArgs]{Op: gemm.TEGeneralGroupedGemm, Cases: groupedGemmCases, Models: groupedGemmModels}.Suite(),
			opstest.Spec[gemm.GroupedGemmArgs]{Op: gemm.TEGeneralGroupedGemmForGroupedTensor, Cases: groupedTensorCases}.Suite(),
			opstest.Spec[gemm.GroupedGemmArgs]{Op: gemm.TEGeneralGroupedGemmForDiscreteIn, Cases: discreteInCases}.Suite(),
			opstest.Spec[gemm.GroupedGemmArgs]{Op: gemm.TEGeneralGroupedGemmForDiscreteOut, Cases: discreteOutCases}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: gemm.GenericGemm, Forward: gemm.GenericGemm, Cases: gemmGradCases},
			{Backward: gemm.TEGeneralGroupedGemm, Forward: gemm.TEGeneralGroupedGemm, Cases: groupedGemmGradCases},
		},
	}
}

// Activation returns the cases of the ops of package activation.
func Activation() opstest.Kit {
	kit := opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[activation.SoftcapArgs]{Op: activation.Softcap, Cases: softcapCases}.Suite(),
			opstest.Spec[activation.DSoftcapArgs]{Op: activation.DSoftcap, Cases: dsoftcapCases}.Suite(),
			opstest.Spec[activation.ClampedSwiGLUArgs]{Op: activation.ClampedSwiGLU, Cases: clampedSwiGLUCases}.Suite(),
			opstest.Spec[activation.ClampedDSwiGLUArgs]{Op: activation.ClampedDSwiGLU, Cases: clampedDSwiGLUCases}.Suite(),
			opstest.Spec[activation.SwiGLUArgs]{Op: activation.SwiGLU, Cases: swigluCases, Models: perToken(ffn, gluArgs)}.Suite(),
			opstest.Spec[activation.DSwiGLUArgs]{Op: activation.DSwiGLU, Cases: dswigluCases, Models: perToken(ffn, dgluArgs)}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: activation.DSoftcap, Forward: activation.Softcap, Cases: softcapGradCases},
			{Backward: activation.ClampedDSwiGLU, Forward: activation.ClampedSwiGLU, Cases: clampedGradCases},
			{Backward: activation.DSwiGLU, Forward: activation.SwiGLU, Cases: gluGradCases(activation.SwiGLU, activation.DSwiGLU)},
		},
	}
	type forward = *opregistry.Op[activation.ActivationArgs]
	type backward = *opregistry.Op[activation.DActivationArgs]
	for _, f := range []struct {
		fwd   forward
		bwd   backward
		dbias *opregistry.Op[activation.DBiasDActivationArgs]
	}{
		{activation.GELU, activation.DGELU, activation.DBiasDGELU},
		{activation.GELUErf, activation.DGELUErf, activation.DBiasDGELUErf},
		{activation.QGELU, activation.DQGELU, activation.DBiasDQGELU},
		{activation.ReLU, activation.DReLU, activation.DBiasDReLU},
		{activation.SReLU, activation.DSReLU, activation.DBiasDSReLU},
		{activation.SiLU, activation.DSiLU, activation.DBiasDSiLU},
	} {
		kit.Suites = append(kit.Suites,
			opstest.Spec[activation.ActivationArgs]{Op: f.fwd, Cases: activationCases, Models: perToken(ffn, activationArgs)}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: f.bwd, Cases: dactivationCases, Models: perToken(ffn, dactivationArgs)}.Suite(),
			opstest.Spec[activation.DBiasDActivationArgs]{Op: f.dbias, Cases: dbiasCases, Models: summedTokens(ffn, dbiasArgs)}.Suite())
		kit.Gradients = append(kit.Gradients,
			opstest.Gradient{Backward: f.bwd, Forward: f.fwd, Cases: activationGradCases(f.fwd, f.bwd)},
			opstest.Gradient{Backward: f.dbias, Forward: f.fwd, Cases: dbiasGradCases(f.fwd, f.dbias)})
	}
	for _, f := range []struct {
		fwd forward
		bwd backward
	}{
		{activation.GEGLU, activation.DGEGLU}, {activation.GEGLUErf, activation.DGEGLUErf}, {activation.GLU, activation.DGLU}, {activation.QGEGLU, activation.DQGEGLU},
		{activation.ReGLU, activation.DReGLU}, {activation.SReGLU, activation.DSReGLU},
	} {
		kit.Suites = append(kit.Suites,
			opstest.Spec[activation.ActivationArgs]{Op: f.fwd, Cases: gluCases, Models: perToken(ffn, gluArgs)}.Suite(),
			opstest.Spec[activation.DActivationArgs]{Op: f.bwd, Cases: dgluCases, Models: perToken(ffn, dgluArgs)}.Suite())
		kit.Gradients = append(kit.Gradients, opstest.Gradient{Backward: f.bwd, Forward: f.fwd, Cases: gluGradCases(f.fwd, f.bwd)})
	}
	return kit
}

// Loss returns the cases of the ops of package loss.
func Loss() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[loss.CrossEntropyFwdArgs]{Op: loss.CrossEntropyFwd, Cases: crossEntropyFwdCases, Models: perToken(vocab, crossEntropyFwdModel)}.Suite(),
			opstest.Spec[loss.CrossEntropyBwdArgs]{Op: loss.CrossEntropyBwd, Cases: crossEntropyBwdCases, Refresh: crossEntropyRefresh, Models: perToken(vocab, crossEntropyBwdModel)}.Suite(),
			opstest.Spec[loss.LinearCrossEntropyFwdArgs]{Op: loss.LinearCrossEntropyFwd, Cases: linearEntropyFwdCases, Models: linearEntropyFwdModels}.Suite(),
			opstest.Spec[loss.LinearCrossEntropyBwdArgs]{Op: loss.LinearCrossEntropyBwd, Cases: linearEntropyBwdCases, Refresh: linearEntropyRefresh, Models: linearEntropyBwdModels}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: loss.CrossEntropyBwd, Forward: loss.CrossEntropyFwd, Cases: crossEntropyGradCases},
			{Backward: loss.LinearCrossEntropyBwd, Forward: loss.LinearCrossEntropyFwd, Cases: linearEntropyGradCases},
		},
	}
}

// Moe returns the cases of the ops of package moe.
func Moe() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[moe.MoEPermuteFwdArgs]{Op: moe.MoEPermuteFwd, Cases: moePermuteFwdCases, Bitwise: true, Models: permuteModels}.Suite(),
			opstest.Spec[moe.MoEUnpermuteArgs]{Op: moe.MoEPermuteBwd, Cases: moeUnpermuteCases, Refresh: moeUnpermuteRefresh, Models: unpermuteModels}.Suite(),
			opstest.Spec[moe.MoEUnpermuteArgs]{Op: moe.MoEUnpermuteFwd, Cases: moeUnpermuteCases, Refresh: moeUnpermuteRefresh, Models: unpermuteModels}.Suite(),
			opstest.Spec[moe.MoEUnpermuteBwdArgs]{Op: moe.MoEUnpermuteBwd, Cases: moeUnpermuteBwdCases, Refresh: moeUnpermuteBwdRefresh, Models: unpermuteBwdModels}.Suite(),
			opstest.Spec[moe.MoEPermuteWithRoutingMapArgs]{Op: moe.MoEPermuteWithRoutingMap, Cases: routingMapCases}.Suite(),
			opstest.Spec[moe.MoEUnpermuteWithRoutingMapArgs]{Op: moe.MoEUnpermuteWithRoutingMap, Cases: unpermuteMapCases, Refresh: unpermuteMapRefresh}.Suite(),
			opstest.Spec[moe.MoESortChunksFwdArgs]{Op: moe.MoESortChunksFwd, Cases: sortChunksCases}.Suite(),
			opstest.Spec[moe.MoESortChunksBwdArgs]{Op: moe.MoESortChunksBwd, Cases: sortChunksBwdCases, Refresh: sortChunksRefresh}.Suite(),
			opstest.Spec[moe.MultiRowPaddingArgs]{Op: moe.FusedMultiRowPadding, Cases: multiRowCases(false)}.Suite(),
			opstest.Spec[moe.MultiRowPaddingArgs]{Op: moe.FusedMultiRowUnpadding, Cases: multiRowCases(true)}.Suite(),
			opstest.Spec[moe.FusedTopkWithScoreFunctionFwdArgs]{Op: moe.FusedTopkWithScoreFunctionFwd, Cases: topkCases, Models: topkModels}.Suite(),
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

// Norm returns the cases of the ops of package norm.
func Norm() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[norm.RMSNormFwdArgs]{Op: norm.RMSNormFwd, Cases: rmsnormFwdCases, Models: perToken(hidden, rmsnormFwdArgs)}.Suite(),
			opstest.Spec[norm.RMSNormBwdArgs]{Op: norm.RMSNormBwd, Cases: rmsnormBwdCases, Refresh: rmsnormRefresh, Models: summedTokens(hidden, rmsnormBwdArgs)}.Suite(),
			opstest.Spec[norm.ResidualAddArgs]{Op: norm.ResidualAdd, Cases: residualAddCases, Models: perToken(hidden, residualArgs)}.Suite(),
			opstest.Spec[norm.RMSNormBwdAddArgs]{Op: norm.RMSNormBwdAdd, Cases: rmsnormBwdAddCases, Models: summedTokens(hidden, rmsnormBwdAddArgs)}.Suite(),
			opstest.Spec[norm.LayerNormFwdArgs]{Op: norm.LayerNormFwd, Cases: layernormFwdCases, Models: perToken(hidden, layernormFwdArgs)}.Suite(),
			opstest.Spec[norm.LayerNormBwdArgs]{Op: norm.LayerNormBwd, Cases: layernormBwdCases, Refresh: layernormRefresh, Models: summedTokens(hidden, layernormBwdArgs)}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: norm.RMSNormBwd, Forward: norm.RMSNormFwd, Cases: rmsnormGradCases},
			{Backward: norm.ResidualAdd, Forward: norm.ResidualAdd, Cases: residualAddGradCases},
			{Backward: norm.RMSNormBwdAdd, Forward: norm.RMSNormFwd, Cases: rmsnormAddGradCases},
			{Backward: norm.LayerNormBwd, Forward: norm.LayerNormFwd, Cases: layernormGradCases},
		},
	}
}

// Optim returns the cases of the ops of package optim.
func Optim() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[optim.MultiTensorAdamArgs]{Op: optim.MultiTensorAdam, Cases: adamCases, Models: adamModels}.Suite(),
			opstest.Spec[optim.MultiTensorL2NormArgs]{Op: optim.MultiTensorL2Norm, Cases: l2normCases, Models: l2normModels, Squares: true}.Suite(),
			opstest.Spec[optim.MultiTensorScaleArgs]{Op: optim.MultiTensorScale, Cases: scaleCases, Models: scaleModels}.Suite(),
			opstest.Spec[optim.MultiTensorAdamArgs]{Op: optim.MultiTensorAdamParamRemainder, Cases: remainderCases, Values: remainderValues}.Suite(),
			opstest.Spec[optim.MultiTensorAdamArgs]{Op: optim.MultiTensorAdamFP8, Cases: adamFP8Cases}.Suite(),
			opstest.Spec[optim.MultiTensorAdamCapturableArgs]{Op: optim.MultiTensorAdamCapturable, Cases: capturableCases}.Suite(),
			opstest.Spec[optim.MultiTensorAdamCapturableArgs]{Op: optim.MultiTensorAdamCapturableMaster, Cases: capturableMasterCases}.Suite(),
			opstest.Spec[optim.MultiTensorSGDArgs]{Op: optim.MultiTensorSGD, Cases: sgdCases, Models: sgdModels}.Suite(),
			opstest.Spec[optim.MultiTensorScaleTensorArgs]{Op: optim.MultiTensorScaleTensor, Cases: scaleTensorCases}.Suite(),
			opstest.Spec[optim.MultiTensorUnscaleL2NormArgs]{Op: optim.MultiTensorUnscaleL2Norm, Cases: unscaleL2NormCases, Squares: true}.Suite(),
		},
	}
}

// Quant returns the cases of the ops of package quant.
func Quant() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[quant.MultiTensorComputeScaleAndScaleInvArgs]{Op: quant.MultiTensorComputeScaleAndScaleInv, Cases: computeScaleCases}.Suite(),
			opstest.Spec[quant.MultiTensorComputeScaleInvE8M0Args]{Op: quant.MultiTensorComputeScaleInvE8M0, Cases: computeE8M0Cases}.Suite(),
			opstest.Spec[quant.ComputeAmaxArgs]{Op: quant.ComputeAmax, Cases: computeAmaxCases}.Suite(),
			opstest.Spec[quant.FusedAmaxAndScaleUpdateArgs]{Op: quant.FusedAmaxAndScaleUpdateAfterReduction, Cases: fusedAmaxCases}.Suite(),
			opstest.Spec[quant.QuantizeArgs]{Op: quant.Quantize, Cases: quantizeCases, Models: quantizeModels}.Suite(),
			opstest.Spec[quant.DequantizeArgs]{Op: quant.Dequantize, Cases: dequantizeCases}.Suite(),
			opstest.Spec[quant.BgradQuantizeArgs]{Op: quant.BgradQuantize, Cases: bgradCases}.Suite(),
			opstest.Spec[quant.MultiTensorQuantizeArgs]{Op: quant.MultiTensorQuantize, Cases: multiQuantizeCases}.Suite(),
			opstest.Spec[quant.SplitQuantizeArgs]{Op: quant.SplitQuantize, Cases: splitQuantizeCases}.Suite(),
			opstest.Spec[quant.GroupQuantizeArgs]{Op: quant.GroupQuantize, Cases: groupQuantizeCases}.Suite(),
			opstest.Spec[quant.BgradGroupQuantizeArgs]{Op: quant.BgradGroupQuantize, Cases: bgradGroupCases}.Suite(),
			opstest.Spec[quant.CastToFP8Args]{Op: quant.CastToFP8, Cases: castToFP8Cases}.Suite(),
			opstest.Spec[quant.FP8TransposeArgs]{Op: quant.FP8Transpose, Cases: fp8TransposeCases, Bitwise: true}.Suite(),
			opstest.Spec[quant.SwapFirstDimsArgs]{Op: quant.SwapFirstDims, Cases: swapFirstDimsCases, Bitwise: true}.Suite(),
			opstest.Spec[quant.NVFP4DataTransposeArgs]{Op: quant.NVFP4DataTranspose, Cases: nvfp4TransposeCases}.Suite(),
			opstest.Spec[quant.NVFP42DMultiTensorTransposeArgs]{Op: quant.NVFP42DMultiTensorTranspose, Cases: nvfp4MultiTransposeCases}.Suite(),
			opstest.Spec[quant.SplitsToOffsetsArgs]{Op: quant.SplitsToOffsets, Cases: splitsCases}.Suite(),
			opstest.Spec[quant.PartialAmaxArgs]{Op: quant.FP8BlockScalingComputePartialAmax, Cases: blockPartialAmaxCases}.Suite(),
			opstest.Spec[quant.PartialCastArgs]{Op: quant.FP8BlockScalingPartialCast, Cases: blockPartialCastCases}.Suite(),
			opstest.Spec[quant.MXFP8PartialAmaxArgs]{Op: quant.MXFP8ScalingComputePartialAmax, Cases: mxfp8PartialAmaxCases}.Suite(),
			opstest.Spec[quant.MXFP8PartialCastArgs]{Op: quant.MXFP8ScalingPartialCast, Cases: mxfp8PartialCastCases}.Suite(),
			opstest.Spec[quant.PartialAmaxArgs]{Op: quant.NVFP42DComputePartialAmax, Cases: nvfp4PartialAmaxCases}.Suite(),
			opstest.Spec[quant.NVFP4MultiTensorComputePartialAmaxArgs]{Op: quant.NVFP4MultiTensorComputePartialAmax, Cases: nvfp4MultiPartialAmaxCases}.Suite(),
			opstest.Spec[quant.NVFP42DPartialCastArgs]{Op: quant.NVFP42DPartialCast, Cases: nvfp4PartialCastCases}.Suite(),
			opstest.Spec[quant.NVFP4MultiTensor2DPartialCastArgs]{Op: quant.NVFP4MultiTensor2DPartialCast, Cases: nvfp4MultiPartialCastCases}.Suite(),
			opstest.Spec[quant.NVFP4ComputeGlobalScaleArgs]{Op: quant.NVFP4ComputeGlobalScale, Cases: globalScaleCases}.Suite(),
			opstest.Spec[quant.NVFP4ComputePerBlockScaleArgs]{Op: quant.NVFP4ComputePerBlockScale, Cases: perBlockScaleCases}.Suite(),
			opstest.Spec[quant.NVFP4ExpandScaleToFP8Args]{Op: quant.NVFP4ExpandScaleToFP8, Cases: expandScaleCases}.Suite(),
			opstest.Spec[quant.NVFP4FusedScaleArgs]{Op: quant.NVFP4FusedScale, Cases: fusedScaleCases}.Suite(),
			opstest.Spec[quant.NVFP4MultiTensorFusedScaleArgs]{Op: quant.NVFP4MultiTensorFusedScale, Cases: multiFusedScaleCases}.Suite(),
		},
	}
}

// Rope returns the cases of the ops of package rope.
func Rope() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[rope.FusedRopeArgs]{Op: rope.FusedRopeForward, Cases: ropeCases, Models: ropeModels}.Suite(),
			opstest.Spec[rope.FusedRopeArgs]{Op: rope.FusedRopeBackward, Cases: ropeCases, Models: ropeModels}.Suite(),
			opstest.Spec[rope.FusedQKVRopeArgs]{Op: rope.FusedQKVRopeForward, Cases: qkvRopeForwardCases, Models: qkvRopeModels(false)}.Suite(),
			opstest.Spec[rope.FusedQKVRopeArgs]{Op: rope.FusedQKVRopeBackward, Cases: qkvRopeBackwardCases, Models: qkvRopeModels(true)}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: rope.FusedRopeBackward, Forward: rope.FusedRopeForward, Cases: ropeGradCases},
			{Backward: rope.FusedQKVRopeBackward, Forward: rope.FusedQKVRopeForward, Cases: qkvRopeGradCases},
		},
	}
}

// Softmax returns the cases of the ops of package softmax.
func Softmax() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[softmax.SoftmaxArgs]{Op: softmax.ScaledSoftmaxForward, Cases: softmaxCases, Models: softmaxModels}.Suite(),
			opstest.Spec[softmax.SoftmaxBackwardArgs]{Op: softmax.ScaledSoftmaxBackward, Cases: softmaxBackwardCases, Models: softmaxBackwardModels(nil)}.Suite(),
			opstest.Spec[softmax.ScaledMaskedSoftmaxForwardArgs]{Op: softmax.ScaledMaskedSoftmaxForward, Cases: maskedSoftmaxCases, Models: maskedSoftmaxModels}.Suite(),
			opstest.Spec[softmax.SoftmaxBackwardArgs]{Op: softmax.ScaledMaskedSoftmaxBackward, Cases: softmaxBackwardCases, Models: softmaxBackwardModels(nil)}.Suite(),
			opstest.Spec[softmax.SoftmaxArgs]{Op: softmax.ScaledUpperTriangMaskedSoftmaxForward, Cases: triangularSoftmaxCases, Models: triangularModels}.Suite(),
			opstest.Spec[softmax.SoftmaxBackwardArgs]{Op: softmax.ScaledUpperTriangMaskedSoftmaxBackward, Cases: triangularSoftmaxBackwardCases, Models: triangularBackwardModels}.Suite(),
			opstest.Spec[softmax.SoftmaxArgs]{Op: softmax.ScaledAlignedCausalMaskedSoftmaxForward, Cases: alignedSoftmaxCases, Models: softmaxModels}.Suite(),
			opstest.Spec[softmax.SoftmaxBackwardArgs]{Op: softmax.ScaledAlignedCausalMaskedSoftmaxBackward, Cases: alignedSoftmaxBackwardCases, Models: softmaxBackwardModels(bottomRight)}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: softmax.ScaledSoftmaxBackward, Forward: softmax.ScaledSoftmaxForward, Cases: softmaxGradCases(softmax.ScaledSoftmaxForward, softmax.ScaledSoftmaxBackward, 2, 2, 3, 4)},
			{Backward: softmax.ScaledUpperTriangMaskedSoftmaxBackward, Forward: softmax.ScaledUpperTriangMaskedSoftmaxForward, Cases: softmaxGradCases(softmax.ScaledUpperTriangMaskedSoftmaxForward, softmax.ScaledUpperTriangMaskedSoftmaxBackward, 2, 4, 4)},
			{Backward: softmax.ScaledAlignedCausalMaskedSoftmaxBackward, Forward: softmax.ScaledAlignedCausalMaskedSoftmaxForward, Cases: softmaxGradCases(softmax.ScaledAlignedCausalMaskedSoftmaxForward, softmax.ScaledAlignedCausalMaskedSoftmaxBackward, 1, 2, 5, 3)},
			{Backward: softmax.ScaledMaskedSoftmaxBackward, Forward: softmax.ScaledMaskedSoftmaxForward, Cases: maskedSoftmaxGradCases},
		},
	}
}
