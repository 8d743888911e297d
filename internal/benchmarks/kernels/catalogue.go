package main

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// quantOps are the roundings of f32 and bf16 to fp8 and fp4 and back on [2048, 4096], which leaves
// the caches, and transposes of bytes on [2048, 4096] and [8192, 8192], of which only the second
// leaves them.
func (b *bench) quantOps() []contest {
	const hidden, large = vocab, 8192
	x := func() *tensor.Tensor { return b.floats(tokens, hidden) }
	narrow := func() *tensor.Tensor {
		return dense(slices.Repeat([]tensor.BFloat16{tensor.ToBFloat16(1)}, tokens*hidden), tokens, hidden)
	}
	number := func() *tensor.Tensor { return dense([]float32{1}, 1) }
	const oneE8M0, oneE4M3 = 127, 56
	fp8 := func(rows, cols int) *tensor.Tensor {
		return dense(slices.Repeat([]tensor.Float8E4M3{oneE4M3}, rows*cols), rows, cols)
	}
	scales := func(s quant.Scaling, rows, cols int) *tensor.Tensor {
		switch s {
		case quant.NVFP4Scaling:
			return fp8(rows, cols)
		case quant.MXFP8Scaling:
			return dense(slices.Repeat([]uint8{oneE8M0}, rows*cols), rows, cols)
		default:
			return dense(slices.Repeat([]float32{1}, rows*cols), rows, cols)
		}
	}
	fp4 := func(rows, cols int) *tensor.Tensor { return dense(make([]uint8, rows*cols/2), rows, cols/2) }
	type kind struct {
		name string
		q    quant.Quantizer
	}
	byRows := func(q quant.Quantizer) quant.Quantized {
		z, block := quant.Quantized{Data: fp8(tokens, hidden)}, q.Scaling.BlockLen()
		if q.Scaling == quant.NVFP4Scaling {
			z.Data, z.Amax = fp4(tokens, hidden), number()
		}
		switch {
		case block == 0:
			z.ScaleInv, z.Scale, z.Amax = number(), number(), number()
		case q.Block2D:
			z.ScaleInv = scales(q.Scaling, tokens/block, hidden/block)
		default:
			z.ScaleInv = scales(q.Scaling, tokens, hidden/block)
		}
		return z
	}
	byColumns := func(q quant.Quantizer) quant.Quantized {
		block := q.Scaling.BlockLen()
		switch q.Scaling {
		case quant.MXFP8Scaling:
			return quant.Quantized{ColumnwiseData: fp8(tokens, hidden), ColumnwiseScaleInv: scales(q.Scaling, tokens/block, hidden)}
		case quant.NVFP4Scaling:
			return quant.Quantized{ColumnwiseData: fp4(hidden, tokens), ColumnwiseScaleInv: scales(q.Scaling, hidden, tokens/block), Amax: number()}
		}
		return quant.Quantized{ColumnwiseData: fp8(hidden, tokens), ColumnwiseScaleInv: scales(q.Scaling, hidden, tokens/block)}
	}
	bothWays := func(q quant.Quantizer) quant.Quantized {
		z, block := byRows(q), q.Scaling.BlockLen()
		switch {
		case block == 0:
			z.ColumnwiseData = fp8(hidden, tokens)
		case q.Block2D:
			z.ColumnwiseData, z.ColumnwiseScaleInv = fp8(hidden, tokens), scales(q.Scaling, hidden/block, tokens/block)
		default:
			t := byColumns(q)
			z.ColumnwiseData, z.ColumnwiseScaleInv = t.ColumnwiseData, t.ColumnwiseScaleInv
		}
		return z
	}
	var all []contest
	quantize := func(name string, q quant.Quantizer, x func() *tensor.Tensor, z func(quant.Quantizer) quant.Quantized) {
		all = append(all, memoryOp(b, "quantize/"+name, quant.Quantize, func() quant.QuantizeArgs {
			return quant.QuantizeArgs{Tensor: x(), Quantizer: q, Output: z(q)}
		}))
	}
	dequantize := func(name string, q quant.Quantizer, z func(quant.Quantizer) quant.Quantized) {
		all = append(all, memoryOp(b, "dequantize/"+name, quant.Dequantize, func() quant.DequantizeArgs {
			in := z(q)
			in.Scale = nil
			if q.Scaling != quant.NVFP4Scaling {
				in.Amax = nil
			}
			return quant.DequantizeArgs{Input: in, Scaling: q.Scaling, Block2D: q.Block2D, Output: x()}
		}))
	}
	for _, k := range []kind{
		{"delayed", quant.Quantizer{Scaling: quant.DelayedScaling}},
		{"current", quant.Quantizer{Scaling: quant.CurrentScaling}},
		{"block", quant.Quantizer{Scaling: quant.BlockScaling, ForcePow2Scales: true}},
		{"block_2d", quant.Quantizer{Scaling: quant.BlockScaling, ForcePow2Scales: true, Block2D: true}},
		{"mxfp8", quant.Quantizer{Scaling: quant.MXFP8Scaling}},
		{"nvfp4", quant.Quantizer{Scaling: quant.NVFP4Scaling}},
	} {
		quantize(k.name, k.q, x, byRows)
		quantize(k.name+"/bf16", k.q, narrow, byRows)
		quantize(k.name+"/both_ways", k.q, x, bothWays)
		if k.q.Scaling != quant.DelayedScaling {
			dequantize(k.name, k.q, byRows)
		}
		if k.q.Scaling.BlockLen() > 0 && !k.q.Block2D {
			quantize(k.name+"/by_columns", k.q, x, byColumns)
			dequantize(k.name+"/by_columns", k.q, byColumns)
		}
	}
	nvfp4 := quant.Quantizer{Scaling: quant.NVFP4Scaling}
	quantize("nvfp4/bf16/by_columns", nvfp4, narrow, byColumns)
	quantize("nvfp4/bf16/both_ways", nvfp4, narrow, bothWays)
	atRandom := quant.Quantizer{Scaling: quant.NVFP4Scaling, Stochastic: true}
	quantize("nvfp4/stochastic", atRandom, x, byRows)
	quantize("nvfp4/stochastic/by_columns", atRandom, x, byColumns)
	all = append(all,
		memoryOp(b, "compute_amax", quant.ComputeAmax, func() quant.ComputeAmaxArgs { return quant.ComputeAmaxArgs{Input: x(), Amax: number()} }),
		memoryOp(b, "fp8_transpose", quant.FP8Transpose, func() quant.FP8TransposeArgs {
			return quant.FP8TransposeArgs{Input: fp8(tokens, hidden), Out: fp8(hidden, tokens)}
		}),
		memoryOp(b, "fp8_transpose/8192", quant.FP8Transpose, func() quant.FP8TransposeArgs {
			return quant.FP8TransposeArgs{Input: fp8(large, large), Out: fp8(large, large)}
		}))
	return grouped(all, "quant")
}

// The sizes of the router.
const (
	experts = 64
	topk    = 8
)

// routerOps are the ops of a mixture of 64 experts, 8 for each of 2048 tokens of 512.
func (b *bench) routerOps() []contest {
	saved := &opregistry.Saved{}
	scores := func() *tensor.Tensor { return b.floats(tokens, experts) }
	routes := b.routes()
	chosen := func() *tensor.Tensor { return dense(slices.Clone(routes), tokens, experts) }
	rows := func() *tensor.Tensor { return b.floats(tokens*topk, hidden) }
	topkFwd := func(f moe.ScoreFunction, pre bool) func() moe.FusedTopkWithScoreFunctionFwdArgs {
		return func() moe.FusedTopkWithScoreFunctionFwdArgs {
			return moe.FusedTopkWithScoreFunctionFwdArgs{
				Logits: scores(), Topk: topk, UsePreSoftmax: pre, ScoreFunction: f, Probs: scores(), RoutingMap: chosen(), IntermediateOutput: scores(), Saved: saved,
			}
		}
	}
	topkBwd := func(f moe.ScoreFunction, pre bool) func() moe.FusedTopkWithScoreFunctionBwdArgs {
		return func() moe.FusedTopkWithScoreFunctionBwdArgs {
			return moe.FusedTopkWithScoreFunctionBwdArgs{
				RoutingMap: chosen(), IntermediateOutput: scores(), GradProbs: scores(), GradLogits: scores(), Topk: topk, UsePreSoftmax: pre, ScoreFunction: f, Saved: saved,
			}
		}
	}
	return grouped([]contest{
		memoryOp(b, "topk_fwd/softmax", moe.FusedTopkWithScoreFunctionFwd, topkFwd(moe.SoftmaxScore, false)),
		memoryOp(b, "topk_fwd/pre_softmax", moe.FusedTopkWithScoreFunctionFwd, topkFwd(moe.SoftmaxScore, true)),
		memoryOp(b, "topk_fwd/sigmoid", moe.FusedTopkWithScoreFunctionFwd, topkFwd(moe.SigmoidScore, false)),
		memoryOp(b, "topk_bwd/softmax", moe.FusedTopkWithScoreFunctionBwd, topkBwd(moe.SoftmaxScore, false)),
		memoryOp(b, "topk_bwd/pre_softmax", moe.FusedTopkWithScoreFunctionBwd, topkBwd(moe.SoftmaxScore, true)),
		memoryOp(b, "topk_bwd/sigmoid", moe.FusedTopkWithScoreFunctionBwd, topkBwd(moe.SigmoidScore, false)),
		memoryOp(b, "score_for_aux_loss_fwd", moe.FusedScoreForMoEAuxLossFwd, func() moe.FusedScoreForMoEAuxLossFwdArgs {
			return moe.FusedScoreForMoEAuxLossFwdArgs{
				Logits: scores(), Topk: topk, ScoreFunction: moe.SoftmaxScore, Scores: scores(), RoutingMap: chosen(), IntermediateOutput: scores(), Saved: saved,
			}
		}),
		memoryOp(b, "score_for_aux_loss_bwd", moe.FusedScoreForMoEAuxLossBwd, func() moe.FusedScoreForMoEAuxLossBwdArgs {
			return moe.FusedScoreForMoEAuxLossBwdArgs{
				IntermediateOutput: scores(), GradScores: scores(), GradLogits: scores(), Topk: topk, ScoreFunction: moe.SoftmaxScore, Saved: saved,
			}
		}),
		memoryOp(b, "aux_loss_fwd", moe.FusedMoEAuxLossFwd, func() moe.FusedMoEAuxLossFwdArgs {
			return moe.FusedMoEAuxLossFwdArgs{
				Probs: scores(), TokensPerExpert: b.floats(experts), TotalNumTokens: tokens, NumExperts: experts, Topk: topk, Coeff: 1, AuxLoss: b.floats(1),
				ConstBuf: b.floats(1), Saved: saved,
			}
		}),
		memoryOp(b, "aux_loss_bwd", moe.FusedMoEAuxLossBwd, func() moe.FusedMoEAuxLossBwdArgs {
			return moe.FusedMoEAuxLossBwdArgs{ConstBuf: b.floats(1), TokensPerExpert: b.floats(experts), GradAuxLoss: b.floats(1), GradProbs: scores(), Saved: saved}
		}),
		memoryOp(b, "permute_with_routing_map", moe.MoEPermuteWithRoutingMap, func() moe.MoEPermuteWithRoutingMapArgs {
			return moe.MoEPermuteWithRoutingMapArgs{
				Tokens: b.floats(tokens, hidden), RoutingMap: chosen(), Probs: scores(), Output: rows(), OutputProbs: b.floats(tokens * topk),
				SortedIndices: b.indexes(tokens*topk, tokens), Saved: saved,
			}
		}),
		memoryOp(b, "unpermute_with_routing_map", moe.MoEUnpermuteWithRoutingMap, func() moe.MoEUnpermuteWithRoutingMapArgs {
			return moe.MoEUnpermuteWithRoutingMapArgs{PermutedTokens: rows(), SortedIndices: byExpert(routes), Output: b.floats(tokens, hidden), Saved: saved}
		}),
	}, "moe")
}

// routes chooses experts at random for every token.
func (b *bench) routes() []bool {
	routes := make([]bool, tokens*experts)
	for t := range tokens {
		for _, e := range b.rng.Perm(experts)[:topk] {
			routes[t*experts+e] = true
		}
	}
	return routes
}

// byExpert returns the tokens of each expert, in the order in which an op permutes them.
func byExpert(routes []bool) *tensor.Tensor {
	var order []int32
	for e := range experts {
		for t := range tokens {
			if routes[t*experts+e] {
				order = append(order, int32(t))
			}
		}
	}
	return dense(order, len(order))
}

// stateOps append keys and values of 4 sequences of 512 tokens to caches of shuffled pages, and go
// through 4 heads of 128 by the gated delta rule.
func (b *bench) stateOps() []contest {
	const heads, page, wide = hidden / headDim, 64, 128
	lengths := func() *tensor.Tensor {
		ends := make([]int32, sequences+1)
		for i := range ends {
			ends[i] = int32(i * tokens / sequences)
		}
		return dense(ends, len(ends))
	}
	cache := func() attention.CopyToKVCacheArgs {
		table := make([]int32, tokens/page)
		for i, p := range b.rng.Perm(len(table)) {
			table[i] = int32(p)
		}
		fresh := func() *tensor.Tensor { return b.floats(sequences, tokens/sequences, heads, headDim) }
		pages := func() *tensor.Tensor { return b.floats(tokens/page, page, heads, headDim) }
		return attention.CopyToKVCacheArgs{
			NewK: fresh(), NewV: fresh(), KCache: pages(), VCache: pages(), PageTable: dense(table, sequences, len(table)/sequences),
			CuNewLens: lengths(), CuCachedLens: lengths(), QKVFormat: attention.BSHD,
		}
	}
	vectors := func() *tensor.Tensor { return b.floats(1, tokens, hidden/wide, wide) }
	numbers := func() *tensor.Tensor { return b.floats(1, tokens, hidden/wide) }
	return grouped([]contest{
		memoryOp(b, "copy_to_kv_cache", attention.CopyToKVCache, cache),
		memoryOp(b, "gated_delta_net_forward", attention.GatedDeltaNetForward, func() attention.GatedDeltaNetForwardArgs {
			decay := make([]float32, tokens*hidden/wide) // whose logarithm is negative
			for i := range decay {
				decay[i] = -b.rng.Float32()
			}
			return attention.GatedDeltaNetForwardArgs{
				Query: vectors(), Key: vectors(), Value: vectors(), G: dense(decay, 1, tokens, hidden/wide), Beta: numbers(), UseQKL2Norm: true, Output: vectors(),
			}
		}),
	}, "state")
}

// grouped puts contests into a group.
func grouped(all []contest, group string) []contest {
	for i := range all {
		all[i].group = group
	}
	return all
}
