package opscases

import (
	"math"

	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/collective"
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

func residualArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) norm.ResidualAddArgs {
	return norm.ResidualAddArgs{A: s.In(l, d, shape...), B: s.In(l, d, shape...), Output: s.Out(l, d, shape...)}
}

func activationArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) activation.ActivationArgs {
	return activation.ActivationArgs{Input: s.Scaled(functionScale, l, d, shape...), Output: s.Out(l, d, shape...)}
}

func dactivationArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) activation.DActivationArgs {
	return activation.DActivationArgs{Grad: s.In(l, d, shape...), FwdInput: s.Scaled(functionScale, l, d, shape...), Output: s.Out(l, d, shape...)}
}

// dbiasArgs has values whose gradients are at most about 2, so that the sums are those that the
// bound is for.
func dbiasArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) activation.DBiasDActivationArgs {
	return activation.DBiasDActivationArgs{
		Grad: s.In(l, d, shape...), FwdInput: s.In(l, d, shape...), DBias: s.Out(opstest.Dense, d, tensor.Shape(shape).Cols()), Output: s.Out(l, d, shape...),
	}
}

func gluArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, half ...int) activation.ActivationArgs {
	return activation.ActivationArgs{Input: s.Scaled(functionScale, l, d, wide(half)...), Output: s.Out(l, d, half...)}
}

func dgluArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, half ...int) activation.DActivationArgs {
	return activation.DActivationArgs{Grad: s.In(l, d, half...), FwdInput: s.Scaled(functionScale, l, d, wide(half)...), Output: s.Out(l, d, wide(half)...)}
}

func crossEntropyFwdModel(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) loss.CrossEntropyFwdArgs {
	return crossEntropyFwdArgs(s, l, d, tensor.I32, shape...)
}

func crossEntropyBwdModel(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) loss.CrossEntropyBwdArgs {
	return crossEntropyBwdArgs(s, l, d, tensor.I64, shape...)
}

// embeddingModels have tokens that are words of the whole vocabulary.
func embeddingFwdModels(d tensor.DType, whole bool) []opstest.Case[embedding.EmbeddingFwdArgs] {
	return sized[embedding.EmbeddingFwdArgs]{lengths: []length{tokens, vocab, hidden.in(8)}, pairs: true, make: func(s *opstest.Stage, d tensor.DType, n []int) embedding.EmbeddingFwdArgs {
		return embedding.EmbeddingFwdArgs{Indices: s.Indexes(tensor.I32, n[0], n[1]), Weight: s.In(opstest.Dense, d, n[1], n[2]), Output: s.Out(opstest.Dense, d, n[0], n[2])}
	}}.cases(d, whole)
}

func embeddingBwdModels(d tensor.DType, whole bool) []opstest.Case[embedding.EmbeddingBwdArgs] {
	return sized[embedding.EmbeddingBwdArgs]{lengths: []length{tokens, vocab, hidden.in(8)}, pairs: true, make: func(s *opstest.Stage, d tensor.DType, n []int) embedding.EmbeddingBwdArgs {
		return embedding.EmbeddingBwdArgs{Grad: s.In(opstest.Dense, d, n[0], n[2]), Indices: s.Indexes(tensor.I32, n[0], n[1]), DWeight: s.Out(opstest.Dense, d, n[1], n[2])}
	}}.cases(d, whole)
}

// gemmModels are the products of a linear layer: forward, of the gradient of the input and of that
// of the weight, where the tokens are what is added up.
func gemmModels(d tensor.DType, whole bool) []opstest.Case[gemm.GenericGemmArgs] {
	var cases []opstest.Case[gemm.GenericGemmArgs]
	rows, out, in := tokens.in(9), ffn.in(24), hidden.in(40)
	for _, way := range []struct {
		name           string
		lengths        []length
		transA, transB bool
	}{
		{"forward", []length{rows, out, in}, true, false},
		{"logits", []length{rows, vocab.in(24), in}, true, false},
		{"dgrad", []length{rows, in, out}, false, false},
		{"wgrad", []length{out, in, rows}, false, true},
	} {
		for _, c := range (sized[gemm.GenericGemmArgs]{
			lengths: way.lengths, pairs: true,
			make: func(s *opstest.Stage, d tensor.DType, n []int) gemm.GenericGemmArgs {
				a := gemmOperands(s, opstest.Dense, d, gemmShape{n[0], n[1], n[2]}, way.transA, way.transB)
				a.D = s.Out(opstest.Dense, d, n[0], n[1])
				return a
			},
			terms: func(n []int) int { return n[2] },
		}).cases(d, whole) {
			c.Name += "/" + way.name
			cases = append(cases, c)
		}
	}
	return cases
}

// gemmInvariants compares D·x with op(B)·(op(A)·x) for a vector x of ±1, which costs as much as
// reading the operands: Freivalds' check. Columns and rows that differ show with probability ½ for
// each of its vectors.
func gemmInvariants(a gemm.GenericGemmArgs) []opstest.Invariant {
	m, n, k := a.Dims()
	if a.Bias != nil || a.Gelu || a.Accumulate || a.Alpha.Or(1) != 1 {
		return nil
	}
	A, B, D := a.A.Float64s(), a.B.Float64s(), a.D.Float64s()
	at := func(v []float64, rows, cols int, turned bool, i, j int) float64 {
		if turned {
			return v[j*rows+i]
		}
		return v[i*cols+j]
	}
	var found []opstest.Invariant
	for seed := range uint64(4) {
		x := make([]float64, n)
		for j := range x {
			x[j] = float64(2*int((uint64(j)*0x9e3779b97f4a7c15+seed*0xbf58476d1ce4e5b9)>>63) - 1)
		}
		inner := make([]float64, k)
		for i := range inner {
			for j := range n {
				inner[i] += at(A, k, n, a.TransA, i, j) * x[j]
			}
		}
		worst := opstest.Invariant{Name: "the product with a vector", Bound: 1}
		for i := range m {
			v := opstest.Invariant{Name: "the product with a vector"}
			squares := 0.0
			for j := range k {
				v.Want += at(B, m, k, a.TransB, i, j) * inner[j]
			}
			for j := range n {
				d := D[i*n+j]
				v.Got += d * x[j]
				e := opstest.Rounding(a.D.DType(), d, k)
				squares += e * e
			}
			v.Bound = 6 * math.Sqrt(squares)
			if !(math.Abs(v.Got-v.Want)/v.Bound <= math.Abs(worst.Got-worst.Want)/worst.Bound) {
				worst = v
			}
		}
		found = append(found, worst)
	}
	return found
}

func groupedGemmModels(d tensor.DType, whole bool) []opstest.Case[gemm.TEGeneralGroupedGemmArgs] {
	const experts = 4
	if whole {
		return nil // the products of the experts are those of generic_gemm
	}
	return sized[gemm.TEGeneralGroupedGemmArgs]{
		lengths: []length{tokens.in(16), ffn.in(20), hidden.in(24)},
		make: func(s *opstest.Stage, d tensor.DType, n []int) gemm.TEGeneralGroupedGemmArgs {
			a := gemm.TEGeneralGroupedGemmArgs{TransA: true}
			for e := range experts {
				rows := 3 * e // the last expert has most tokens
				if e == experts-1 {
					rows = n[0] - 9
				}
				a.A = append(a.A, s.In(opstest.Dense, d, n[1], n[2]))
				a.B = append(a.B, s.In(opstest.Dense, d, rows, n[2]))
				a.D = append(a.D, s.Out(opstest.Dense, d, rows, n[1]))
			}
			return a
		},
		terms: func(n []int) int { return n[2] },
	}.cases(d, whole)
}

// attnModels are calls with the heads of a model and few positions, with one pair of heads and many
// keys or many queries, and with many of both.
func attnModels[A any](d tensor.DType, whole bool, make func(s *opstest.Stage, l opstest.Layout, d tensor.DType, f attention.QKVFormat, m attention.MaskType, n attnShape) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	known := map[attnShape]bool{}
	add := func(f attention.QKVFormat, m attention.MaskType, n attnShape) {
		if !known[n] {
			known[n] = true
			cases = append(cases, opstest.Case[A]{
				Name: "model/" + n.String() + "/" + m.String(), Terms: 64,
				Make: func(s *opstest.Stage) A { return make(s, opstest.Dense, d, f, m, n) },
			})
		}
	}
	for _, m := range models() {
		if whole {
			add(attention.BSHD, attention.CausalMask, attnShape{1, m.seq, m.seq, m.heads / m.groups, 1, m.head, m.head})
			continue
		}
		if d != tensor.F32 && d != tensor.BF16 && m.name != "70B" {
			continue
		}
		add(attention.BSHD, attention.CausalMask, attnShape{1, 12, 12, m.heads, m.groups, m.head, m.head})
		add(attention.SBHD, attention.CausalBottomRightMask, attnShape{1, 6, m.seq, 2, 1, 16, 16})
		add(attention.BSHD, attention.NoMask, attnShape{1, m.seq, 6, 2, 1, 16, 16})
		add(attention.BSHD, attention.CausalMask, attnShape{1, 640, 640, 1, 1, 16, 16})
	}
	return cases
}

func attnFwdModels(d tensor.DType, whole bool) []opstest.Case[attention.FusedAttnFwdArgs] {
	return attnModels(d, whole, attnFwdArgs)
}

// attnBwdModels leaves out whole calls: the state that is saved for them would take longer to
// compute than the gradient.
func attnBwdModels(d tensor.DType, whole bool) []opstest.Case[attention.FusedAttnBwdArgs] {
	return attnModels(d, false, attnBwdArgs)
}

func ropeModels(d tensor.DType, whole bool) []opstest.Case[rope.FusedRopeArgs] {
	return sized[rope.FusedRopeArgs]{lengths: []length{tokens, heads, head}, make: func(s *opstest.Stage, d tensor.DType, n []int) rope.FusedRopeArgs {
		return rope.FusedRopeArgs{
			Input: s.In(opstest.Dense, d, 1, n[0], n[1], n[2]), Freqs: ropeAngles(s, 10, n[0], n[2]), Output: s.Out(opstest.Dense, d, 1, n[0], n[1], n[2]),
			QKVFormat: attention.BSHD,
		}
	}}.cases(d, whole)
}

func qkvRopeModels(backward bool) func(tensor.DType, bool) []opstest.Case[rope.FusedQKVRopeArgs] {
	return sized[rope.FusedQKVRopeArgs]{lengths: []length{tokens, heads, head}, make: func(s *opstest.Stage, d tensor.DType, n []int) rope.FusedQKVRopeArgs {
		return qkvRopeArgs(s, backward, opstest.Dense, d, attention.SBHD, qkvShape{n[0], 1, max(n[1]/8, 1), []int{8 * n[2], n[2], n[2]}, n[2], n[2]})
	}}.cases
}

// scores are [1, heads, queries, keys].
var scores = []length{heads.in(1), tokens.in(9), keys}

func softmaxModels(d tensor.DType, whole bool) []opstest.Case[softmax.SoftmaxArgs] {
	return sized[softmax.SoftmaxArgs]{lengths: scores, make: func(s *opstest.Stage, d tensor.DType, n []int) softmax.SoftmaxArgs {
		return softmax.SoftmaxArgs{Input: s.Scaled(4, opstest.Dense, d, 1, n[0], n[1], n[2]), Output: s.Out(opstest.Dense, d, 1, n[0], n[1], n[2]), ScaleFactor: 0.75}
	}}.cases(d, whole)
}

func softmaxBackwardModels(hidden hides) func(tensor.DType, bool) []opstest.Case[softmax.SoftmaxBackwardArgs] {
	return sized[softmax.SoftmaxBackwardArgs]{lengths: scores, make: func(s *opstest.Stage, d tensor.DType, n []int) softmax.SoftmaxBackwardArgs {
		shape := []int{1, n[0], n[1], n[2]}
		return softmax.SoftmaxBackwardArgs{OutputGrads: s.In(opstest.Dense, d, shape...), SoftmaxResults: results(s, opstest.Dense, d, shape, hidden), Output: s.Out(opstest.Dense, d, shape...), ScaleFactor: 0.75}
	}}.cases
}

func maskedSoftmaxModels(d tensor.DType, whole bool) []opstest.Case[softmax.ScaledMaskedSoftmaxForwardArgs] {
	return sized[softmax.ScaledMaskedSoftmaxForwardArgs]{lengths: scores, make: func(s *opstest.Stage, d tensor.DType, n []int) softmax.ScaledMaskedSoftmaxForwardArgs {
		shape := []int{1, n[0], n[1], n[2]}
		return softmax.ScaledMaskedSoftmaxForwardArgs{
			Input: s.Scaled(4, opstest.Dense, d, shape...), Mask: s.In(opstest.Dense, tensor.Bool, 1, 1, n[1], n[2]), Output: s.Out(opstest.Dense, d, shape...), ScaleFactor: 0.75,
		}
	}}.cases(d, whole)
}

// square are [heads, positions, positions]; a model with 4,096 positions has 16 million scores in a
// head, so a third of the length stands for it.
var square = []length{heads.in(1), {"positions", func(m model) int { return m.seq / 3 }, 12}}

func triangularModels(d tensor.DType, whole bool) []opstest.Case[softmax.SoftmaxArgs] {
	return sized[softmax.SoftmaxArgs]{lengths: square, make: func(s *opstest.Stage, d tensor.DType, n []int) softmax.SoftmaxArgs {
		return softmax.SoftmaxArgs{Input: s.Scaled(4, opstest.Dense, d, n[0], n[1], n[1]), Output: s.Out(opstest.Dense, d, n[0], n[1], n[1]), ScaleFactor: 0.75}
	}}.cases(d, whole)
}

func triangularBackwardModels(d tensor.DType, whole bool) []opstest.Case[softmax.SoftmaxBackwardArgs] {
	return sized[softmax.SoftmaxBackwardArgs]{lengths: square, make: func(s *opstest.Stage, d tensor.DType, n []int) softmax.SoftmaxBackwardArgs {
		shape := []int{n[0], n[1], n[1]}
		return softmax.SoftmaxBackwardArgs{
			OutputGrads: s.In(opstest.Dense, d, shape...), SoftmaxResults: results(s, opstest.Dense, d, shape, bottomRight), Output: s.Out(opstest.Dense, d, shape...), ScaleFactor: 0.75,
		}
	}}.cases(d, whole)
}

// weights are the shapes of the largest parameters: an embedding and a projection, with one length
// of the model.
var weights = []length{vocab.in(7), hidden.in(3)}

func adamModels(d tensor.DType, whole bool) []opstest.Case[optim.MultiTensorAdamArgs] {
	return sized[optim.MultiTensorAdamArgs]{lengths: weights, make: func(s *opstest.Stage, d tensor.DType, n []int) optim.MultiTensorAdamArgs {
		return optim.MultiTensorAdamArgs{
			NoopFlag: s.Flag(0), TensorLists: adamLists(s, opstest.Dense, d, n, []int{n[1]}, []int{3}),
			LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Step: 3, Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
		}
	}}.cases(d, whole)
}

func sgdModels(d tensor.DType, whole bool) []opstest.Case[optim.MultiTensorSGDArgs] {
	return sized[optim.MultiTensorSGDArgs]{lengths: weights, make: func(s *opstest.Stage, d tensor.DType, n []int) optim.MultiTensorSGDArgs {
		shapes := [][]int{n, {n[1]}, {3}}
		return optim.MultiTensorSGDArgs{
			NoopFlag: s.Flag(0), TensorLists: [][]*tensor.Tensor{list(s, opstest.Dense, d, shapes...), list(s, opstest.Dense, d, shapes...), list(s, opstest.Dense, d, shapes...)},
			WD: 0.1, Momentum: 0.9, Dampening: 0.2, LR: 0.05, Scale: 0.5,
		}
	}}.cases(d, whole)
}

func scaleModels(d tensor.DType, whole bool) []opstest.Case[optim.MultiTensorScaleArgs] {
	return sized[optim.MultiTensorScaleArgs]{lengths: weights, make: func(s *opstest.Stage, d tensor.DType, n []int) optim.MultiTensorScaleArgs {
		return optim.MultiTensorScaleArgs{
			NoopFlag: s.Flag(0), Scale: 0.3,
			TensorLists: [][]*tensor.Tensor{list(s, opstest.Dense, d, n, []int{n[1]}), {s.Out(opstest.Dense, d, n...), s.Out(opstest.Dense, d, n[1])}},
		}
	}}.cases(d, whole)
}

func l2normModels(d tensor.DType, whole bool) []opstest.Case[optim.MultiTensorL2NormArgs] {
	return sized[optim.MultiTensorL2NormArgs]{lengths: weights, make: func(s *opstest.Stage, d tensor.DType, n []int) optim.MultiTensorL2NormArgs {
		return optim.MultiTensorL2NormArgs{
			NoopFlag: s.Flag(0), TensorLists: [][]*tensor.Tensor{list(s, opstest.Dense, d, n, []int{n[1]}, []int{3})},
			Norm: s.Out(opstest.Dense, tensor.F32, 1), PerTensor: s.Out(opstest.Dense, tensor.F32, 3),
		}
	}}.cases(d, whole)
}

// experts is the number of experts of a mixture, and topk how many of them a token has.
const (
	experts = 8
	topk    = 2
)

// routed returns the shape of a batch of tokens for a mixture of experts.
func routed(n []int) moeShape { return moeShape{n[0], n[1], experts, topk, topk * n[0]} }

func permuteModels(d tensor.DType, whole bool) []opstest.Case[moe.MoEPermuteFwdArgs] {
	return sized[moe.MoEPermuteFwdArgs]{lengths: []length{tokens, hidden}, make: func(s *opstest.Stage, d tensor.DType, n []int) moe.MoEPermuteFwdArgs {
		return moePermuteArgs(s, opstest.Dense, d, routed(n))
	}}.cases(d, whole)
}

func unpermuteModels(d tensor.DType, whole bool) []opstest.Case[moe.MoEUnpermuteArgs] {
	return sized[moe.MoEUnpermuteArgs]{lengths: []length{tokens, hidden}, make: func(s *opstest.Stage, d tensor.DType, n []int) moe.MoEUnpermuteArgs {
		return moeUnpermuteArgs(s, opstest.Dense, d, routed(n), true)
	}}.cases(d, whole)
}

func unpermuteBwdModels(d tensor.DType, whole bool) []opstest.Case[moe.MoEUnpermuteBwdArgs] {
	return sized[moe.MoEUnpermuteBwdArgs]{
		lengths: []length{tokens, hidden},
		make: func(s *opstest.Stage, d tensor.DType, n []int) moe.MoEUnpermuteBwdArgs {
			return moeUnpermuteBwdArgs(s, opstest.Dense, d, routed(n), true)
		},
		terms: func(n []int) int { return n[1] },
	}.cases(d, whole)
}

func topkModels(d tensor.DType, whole bool) []opstest.Case[moe.FusedTopkWithScoreFunctionFwdArgs] {
	return sized[moe.FusedTopkWithScoreFunctionFwdArgs]{lengths: []length{tokens}, make: func(s *opstest.Stage, d tensor.DType, n []int) moe.FusedTopkWithScoreFunctionFwdArgs {
		return topkArgs(s, opstest.Dense, d, routerCase{tokens: n[0], experts: experts, topk: topk, score: moe.SoftmaxScore})
	}}.cases(d, whole)
}

func quantizeModels(d tensor.DType, whole bool) []opstest.Case[quant.QuantizeArgs] {
	var cases []opstest.Case[quant.QuantizeArgs]
	for _, z := range []int{1, 3, 6, 14} {
		z := quantizations()[z]
		for _, c := range (sized[quant.QuantizeArgs]{lengths: []length{tokens.in(6), hidden.in(34)}, make: func(s *opstest.Stage, d tensor.DType, n []int) quant.QuantizeArgs {
			return quant.QuantizeArgs{Tensor: unevenRows(s, opstest.Dense, d, n[0], n[1]), Quantizer: z.q, Output: quantized(s, z, opstest.Dense, n[0], n[1], true, true)}
		}}).cases(d, whole) {
			c.Name += "/" + z.name
			cases = append(cases, c)
		}
	}
	return cases
}

func allReduceModels(d tensor.DType, whole bool) []opstest.Case[collective.AllReduceArgs] {
	return sized[collective.AllReduceArgs]{lengths: []length{tokens, hidden}, make: func(s *opstest.Stage, d tensor.DType, n []int) collective.AllReduceArgs {
		return collective.AllReduceArgs{Input: s.In(opstest.Dense, d, n...), Output: s.Out(opstest.Dense, d, n...), Group: alone}
	}}.cases(d, whole)
}
