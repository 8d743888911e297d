package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// The sizes of the cases: tokens of a training step, in sequences.
const (
	tokens     = 2048
	sequences  = 4
	hidden     = 512
	headDim    = 64
	vocab      = 4096
	parameters = tokens * hidden
)

// contests returns the cases of all groups.
func (b *bench) contests() []contest {
	all := b.gemms()
	for _, name := range strings.Fields(`rmsnorm_fwd rmsnorm_bwd layernorm_fwd layernorm_bwd swiglu dswiglu residual_add embedding_fwd embedding_bwd
		multi_tensor_adam multi_tensor_l2norm multi_tensor_scale`) {
		all = append(all, b.op("memory", name, name, hidden))
	}
	for _, cols := range []int{hidden, vocab} {
		for _, name := range []string{"cross_entropy_fwd", "cross_entropy_bwd"} {
			all = append(all, b.op("memory", fmt.Sprintf("%s/%d", name, cols), name, cols))
		}
	}
	all = append(all, b.memoryVariants()...)
	for _, name := range []string{"gelu", "dgelu", "dbias_dgelu"} {
		all = append(all, b.op("gelu", name, name, hidden))
	}
	for _, more := range [][]contest{b.quantOps(), b.routerOps(), b.stateOps(), b.losses(), b.attentions(), b.attentionOptions()} {
		all = append(all, more...)
	}
	return all
}

// linears are the linear layers of the model presets: rows and columns of W.
var linears = []struct {
	name    string
	out, in int
}{
	{"6M/qkv", 864, 288},
	{"6M/out", 288, 288},
	{"6M/gate_up", 1536, 288},
	{"6M/down", 288, 768},
	{"6M/head", 512, 288},
	{"30M/qkv", 1536, 512},
	{"30M/out", 512, 512},
	{"30M/gate_up", 2752, 512},
	{"30M/down", 512, 1376},
	{"30M/head", 4096, 512},
}

// gemms are y = x·Wᵀ, dx = dy·W and dW = dyᵀ·x of each linear layer, and squares.
func (b *bench) gemms() []contest {
	var all []contest
	for _, l := range linears {
		all = append(all,
			b.gemm(l.name+"/fprop", tokens, l.out, l.in, opbench.Forward),
			b.gemm(l.name+"/dgrad", tokens, l.in, l.out, opbench.DGrad),
			b.gemm(l.name+"/wgrad", l.out, l.in, tokens, opbench.WGrad),
		)
	}
	for _, n := range []int{256, 512, 1024, 2048} {
		all = append(all, b.gemm(fmt.Sprintf("square/%d", n), n, n, n, opbench.DGrad))
	}
	return all
}

func (b *bench) gemm(name string, rows, cols, inner int, l opbench.Layout) contest {
	return contest{group: "gemm", name: name, unit: "GFLOP/s", prepare: func(m *opbench.Maker) (match, error) {
		c, err := m.GEMM(rows, cols, inner, l)
		if info := b.blas.Info(); err == nil && strings.Contains(info, "warning") {
			err = fmt.Errorf("the peer is not at its best: %s", info)
		}
		if err != nil {
			return match{}, err
		}
		return match{ours: b.side(c, flagosID), oursWork: 1e-9 * c.FLOPs, peer: b.side(c, openblasID), peerWork: 1e-9 * c.FLOPs, peerName: "OpenBLAS"}, nil
	}}
}

// op compares an op over matrices of tokens × cols with the loop that moves the same bytes.
func (b *bench) op(group, name, op string, cols int) contest {
	return b.besideLoop(group, name, func(m *opbench.Maker) (opbench.Case, error) { return m.Op(op, tokens, cols) })
}

// call compares a call of an op with the loop that moves the same bytes.
func call[A any](b *bench, group, name string, op *opregistry.Op[A], args func(*opbench.Maker) A) contest {
	return b.besideLoop(group, name, func(m *opbench.Maker) (opbench.Case, error) { return opbench.NewCase(m, op, name, args(m)) })
}

func (b *bench) besideLoop(group, name string, build func(*opbench.Maker) (opbench.Case, error)) contest {
	return contest{group: group, name: name, unit: "GB/s", prepare: func(m *opbench.Maker) (match, error) {
		c, err := build(m)
		if err != nil {
			return match{}, err
		}
		t := trafficOf(c.Call.Operands())
		l := loopFor(t)
		return match{
			ours: b.side(c, flagosID), oursWork: 1e-9 * float64(t.read+t.written),
			peer: opbench.NewSide(b.now, func() error { l.run(b.pool); return nil }), peerWork: 1e-9 * float64(l.traffic()), peerName: l.name,
		}, nil
	}}
}

// filled makes a tensor of these values.
func filled[T tensor.Element](m *opbench.Maker, d tensor.DType, values []T, shape ...int) *tensor.Tensor {
	t := m.Fresh(d, shape...)
	if t != nil {
		copy(tensor.Data[T](t), values)
	}
	return t
}

// memoryVariants are memory-bound ops with operands that opbench.Maker.Op does not make.
func (b *bench) memoryVariants() []contest {
	adam := func(m *opbench.Maker, lists [][]*tensor.Tensor) optim.MultiTensorAdamArgs {
		return optim.MultiTensorAdamArgs{
			NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: lists, LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8,
			Step: 10, Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
		}
	}
	heads := func(m *opbench.Maker, n, d int) *tensor.Tensor { return m.Random(sequences, tokens/sequences, n, d) }
	angles := func(m *opbench.Maker) *tensor.Tensor { return m.Filled(tensor.F32, 0.5, tokens/sequences, headDim) }
	turn := func(m *opbench.Maker) rope.FusedRopeArgs {
		return rope.FusedRopeArgs{Input: heads(m, hidden/headDim, headDim), Output: heads(m, hidden/headDim, headDim), Freqs: angles(m), QKVFormat: attention.BSHD}
	}
	projection := func(m *opbench.Maker) rope.FusedQKVRopeArgs { // two heads of queries for one of keys
		const groups, members = hidden / headDim / 2, 2
		freqs := angles(m)
		return rope.FusedQKVRopeArgs{
			QKV: heads(m, groups, (members+2)*headDim), QFreqs: freqs, KFreqs: freqs, Q: heads(m, groups*members, headDim), K: heads(m, groups, headDim),
			V: heads(m, groups, headDim), QKVSplitArgList: []int{members * headDim, headDim, headDim}, QKVFormat: attention.BSHD,
		}
	}
	return []contest{
		call(b, "memory", "rmsnorm_bwd_add", norm.RMSNormBwdAdd, func(m *opbench.Maker) norm.RMSNormBwdAddArgs {
			x := func() *tensor.Tensor { return m.Random(tokens, hidden) }
			return norm.RMSNormBwdAddArgs{DZ: x(), X: x(), Add: x(), RSigma: m.Positive(tokens), Gamma: m.Random(hidden), DX: x(), DGamma: m.Random(hidden)}
		}),
		call(b, "memory", "fused_rope_forward", rope.FusedRopeForward, turn),
		call(b, "memory", "fused_rope_backward", rope.FusedRopeBackward, turn),
		call(b, "memory", "fused_qkv_rope_forward", rope.FusedQKVRopeForward, projection),
		call(b, "memory", "fused_qkv_rope_backward", rope.FusedQKVRopeBackward, projection),
		call(b, "memory", "multi_tensor_adam/64_tensors", optim.MultiTensorAdam, func(m *opbench.Maker) optim.MultiTensorAdamArgs {
			lists := make([][]*tensor.Tensor, 4)
			for i := range lists {
				for range 64 {
					lists[i] = append(lists[i], m.Positive(parameters/64))
				}
			}
			return adam(m, lists)
		}),
		call(b, "memory", "multi_tensor_adam_fp8", optim.MultiTensorAdamFP8, func(m *opbench.Maker) optim.MultiTensorAdamArgs {
			var lists [][]*tensor.Tensor
			for _, size := range []int{parameters, 0, parameters, parameters, parameters, 1, 1, 1} {
				t := m.Fresh(tensor.F8E4M3, parameters)
				if size > 0 {
					t = m.Positive(size)
				}
				lists = append(lists, []*tensor.Tensor{t})
			}
			return adam(m, lists)
		}),
		call(b, "memory", "multi_tensor_scale/in_place", optim.MultiTensorScale, func(m *opbench.Maker) optim.MultiTensorScaleArgs {
			list := []*tensor.Tensor{m.Random(parameters)}
			return optim.MultiTensorScaleArgs{NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: [][]*tensor.Tensor{list, list}, Scale: 1}
		}),
	}
}

// The sizes of the router.
const (
	experts = 64
	topk    = 8
)

// routerOps are the ops of a mixture of 64 experts, 8 for each of 2048 tokens of 512.
func (b *bench) routerOps() []contest {
	saved := &opregistry.Saved{}
	scores := func(m *opbench.Maker) *tensor.Tensor { return m.Positive(tokens, experts) }
	routes := routes()
	chosen := func(m *opbench.Maker) *tensor.Tensor { return filled(m, tensor.Bool, routes, tokens, experts) }
	var all []contest
	for _, kind := range []struct {
		name string
		f    moe.ScoreFunction
		pre  bool
	}{{"softmax", moe.SoftmaxScore, false}, {"pre_softmax", moe.SoftmaxScore, true}, {"sigmoid", moe.SigmoidScore, false}} {
		all = append(all,
			call(b, "moe", "topk_fwd/"+kind.name, moe.FusedTopkWithScoreFunctionFwd, func(m *opbench.Maker) moe.FusedTopkWithScoreFunctionFwdArgs {
				return moe.FusedTopkWithScoreFunctionFwdArgs{
					Logits: scores(m), Topk: topk, UsePreSoftmax: kind.pre, ScoreFunction: kind.f, Probs: scores(m), RoutingMap: chosen(m), IntermediateOutput: scores(m), Saved: saved,
				}
			}),
			call(b, "moe", "topk_bwd/"+kind.name, moe.FusedTopkWithScoreFunctionBwd, func(m *opbench.Maker) moe.FusedTopkWithScoreFunctionBwdArgs {
				return moe.FusedTopkWithScoreFunctionBwdArgs{
					RoutingMap: chosen(m), IntermediateOutput: scores(m), GradProbs: scores(m), GradLogits: scores(m), Topk: topk, UsePreSoftmax: kind.pre, ScoreFunction: kind.f, Saved: saved,
				}
			}))
	}
	return append(all,
		call(b, "moe", "score_for_aux_loss_fwd", moe.FusedScoreForMoEAuxLossFwd, func(m *opbench.Maker) moe.FusedScoreForMoEAuxLossFwdArgs {
			return moe.FusedScoreForMoEAuxLossFwdArgs{
				Logits: scores(m), Topk: topk, ScoreFunction: moe.SoftmaxScore, Scores: scores(m), RoutingMap: chosen(m), IntermediateOutput: scores(m), Saved: saved,
			}
		}),
		call(b, "moe", "score_for_aux_loss_bwd", moe.FusedScoreForMoEAuxLossBwd, func(m *opbench.Maker) moe.FusedScoreForMoEAuxLossBwdArgs {
			return moe.FusedScoreForMoEAuxLossBwdArgs{
				IntermediateOutput: scores(m), GradScores: scores(m), GradLogits: scores(m), Topk: topk, ScoreFunction: moe.SoftmaxScore, Saved: saved,
			}
		}),
		call(b, "moe", "aux_loss_fwd", moe.FusedMoEAuxLossFwd, func(m *opbench.Maker) moe.FusedMoEAuxLossFwdArgs {
			return moe.FusedMoEAuxLossFwdArgs{
				Probs: scores(m), TokensPerExpert: m.Positive(experts), TotalNumTokens: tokens, NumExperts: experts, Topk: topk, Coeff: 1, AuxLoss: m.Positive(1),
				ConstBuf: m.Positive(1), Saved: saved,
			}
		}),
		call(b, "moe", "aux_loss_bwd", moe.FusedMoEAuxLossBwd, func(m *opbench.Maker) moe.FusedMoEAuxLossBwdArgs {
			return moe.FusedMoEAuxLossBwdArgs{ConstBuf: m.Positive(1), TokensPerExpert: m.Positive(experts), GradAuxLoss: m.Positive(1), GradProbs: scores(m), Saved: saved}
		}),
		call(b, "moe", "permute_with_routing_map", moe.MoEPermuteWithRoutingMap, func(m *opbench.Maker) moe.MoEPermuteWithRoutingMapArgs {
			return moe.MoEPermuteWithRoutingMapArgs{
				Tokens: m.Random(tokens, hidden), RoutingMap: chosen(m), Probs: scores(m), Output: m.Random(tokens*topk, hidden), OutputProbs: m.Positive(tokens * topk),
				SortedIndices: m.Indexes(tokens, tokens*topk), Saved: saved,
			}
		}),
		call(b, "moe", "unpermute_with_routing_map", moe.MoEUnpermuteWithRoutingMap, func(m *opbench.Maker) moe.MoEUnpermuteWithRoutingMapArgs {
			order := byExpert(routes)
			return moe.MoEUnpermuteWithRoutingMapArgs{
				PermutedTokens: m.Random(tokens*topk, hidden), SortedIndices: filled(m, tensor.I32, order, len(order)), Output: m.Random(tokens, hidden), Saved: saved,
			}
		}))
}

// routes chooses experts at random for every token.
func routes() []bool {
	random, routes := rand.New(rand.NewPCG(1, 1)), make([]bool, tokens*experts)
	for t := range tokens {
		for _, e := range random.Perm(experts)[:topk] {
			routes[t*experts+e] = true
		}
	}
	return routes
}

// byExpert returns the tokens of each expert, in the order in which an op permutes them.
func byExpert(routes []bool) []int32 {
	var order []int32
	for e := range experts {
		for t := range tokens {
			if routes[t*experts+e] {
				order = append(order, int32(t))
			}
		}
	}
	return order
}

// stateOps append keys and values of 4 sequences of 512 tokens to caches of shuffled pages, and go
// through 4 heads of 128 by the gated delta rule.
func (b *bench) stateOps() []contest {
	const heads, page, wide = hidden / headDim, 64, 128
	return []contest{
		call(b, "state", "copy_to_kv_cache", attention.CopyToKVCache, func(m *opbench.Maker) attention.CopyToKVCacheArgs {
			var ends, table []int32
			for i := range sequences + 1 {
				ends = append(ends, int32(i*tokens/sequences))
			}
			for _, p := range rand.New(rand.NewPCG(1, 1)).Perm(tokens / page) {
				table = append(table, int32(p))
			}
			lengths := func() *tensor.Tensor { return filled(m, tensor.I32, ends, len(ends)) }
			fresh := func() *tensor.Tensor { return m.Random(sequences, tokens/sequences, heads, headDim) }
			pages := func() *tensor.Tensor { return m.Random(tokens/page, page, heads, headDim) }
			return attention.CopyToKVCacheArgs{
				NewK: fresh(), NewV: fresh(), KCache: pages(), VCache: pages(), PageTable: filled(m, tensor.I32, table, sequences, len(table)/sequences),
				CuNewLens: lengths(), CuCachedLens: lengths(), QKVFormat: attention.BSHD,
			}
		}),
		call(b, "state", "gated_delta_net_forward", attention.GatedDeltaNetForward, func(m *opbench.Maker) attention.GatedDeltaNetForwardArgs {
			vectors := func() *tensor.Tensor { return m.Random(1, tokens, hidden/wide, wide) }
			decay := m.Filled(tensor.F32, -0.5, 1, tokens, hidden/wide) // the logarithm of one
			return attention.GatedDeltaNetForwardArgs{
				Query: vectors(), Key: vectors(), Value: vectors(), G: decay, Beta: m.Positive(1, tokens, hidden/wide), UseQKL2Norm: true, Output: vectors(),
			}
		}),
	}
}
