package main

import (
	"strconv"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// The sizes of the memory-bound ops.
const (
	hidden     = 512
	headDim    = 64
	vocab      = 4096
	parameters = tokens * hidden
	ignored    = -100
)

// geluOps are GELU and its gradients on [2048, 512], whose arithmetic takes longer than
// memory does.
func (b *bench) geluOps() []contest {
	x := func() *tensor.Tensor { return b.floats(tokens, hidden) }
	return grouped([]contest{
		memoryOp(b, "gelu", activation.GELU, func() activation.ActivationArgs {
			return activation.ActivationArgs{Input: x(), Output: x()}
		}),
		memoryOp(b, "dgelu", activation.DGELU, func() activation.DActivationArgs {
			return activation.DActivationArgs{Grad: x(), FwdInput: x(), Output: x()}
		}),
		memoryOp(b, "dbias_dgelu", activation.DBiasDGELU, func() activation.DBiasDActivationArgs {
			return activation.DBiasDActivationArgs{Grad: x(), FwdInput: x(), Output: x(), DBias: b.floats(hidden)}
		}),
	}, "gelu")
}

// memoryOps are the memory-bound ops on [2048, 512].
func (b *bench) memoryOps() []contest {
	x := func(cols int) *tensor.Tensor { return b.floats(tokens, cols) }
	flag := func() *tensor.Tensor { return dense([]int32{0}, 1) }
	saved := &opregistry.Saved{}
	all := []contest{
		memoryOp(b, "rmsnorm_fwd", norm.RMSNormFwd, func() norm.RMSNormFwdArgs {
			return norm.RMSNormFwdArgs{Input: x(hidden), Weight: b.floats(hidden), Output: x(hidden), RSigma: x(1), Eps: 1e-5, Saved: saved}
		}),
		memoryOp(b, "rmsnorm_bwd", norm.RMSNormBwd, func() norm.RMSNormBwdArgs {
			return norm.RMSNormBwdArgs{
				DZ: x(hidden), X: x(hidden), RSigma: x(1), Gamma: b.floats(hidden), DX: x(hidden), DGamma: b.floats(hidden), Saved: saved,
			}
		}),
		memoryOp(b, "rmsnorm_bwd_add", norm.RMSNormBwdAdd, func() norm.RMSNormBwdAddArgs {
			return norm.RMSNormBwdAddArgs{
				DZ: x(hidden), X: x(hidden), Add: x(hidden), RSigma: x(1), Gamma: b.floats(hidden), DX: x(hidden), DGamma: b.floats(hidden),
			}
		}),
		memoryOp(b, "layernorm_fwd", norm.LayerNormFwd, func() norm.LayerNormFwdArgs {
			return norm.LayerNormFwdArgs{
				Input: x(hidden), Weight: b.floats(hidden), Bias: b.floats(hidden), Output: x(hidden), Mu: x(1), RSigma: x(1), Eps: 1e-5,
				Saved: saved,
			}
		}),
		memoryOp(b, "layernorm_bwd", norm.LayerNormBwd, func() norm.LayerNormBwdArgs {
			return norm.LayerNormBwdArgs{
				DZ: x(hidden), X: x(hidden), Mu: x(1), RSigma: x(1), Gamma: b.floats(hidden), DX: x(hidden), DGamma: b.floats(hidden),
				DBeta: b.floats(hidden), Saved: saved,
			}
		}),
		memoryOp(b, "swiglu", activation.SwiGLU, func() activation.SwiGLUArgs {
			return activation.SwiGLUArgs{Input: x(2 * hidden), Output: x(hidden)}
		}),
		memoryOp(b, "dswiglu", activation.DSwiGLU, func() activation.DSwiGLUArgs {
			return activation.DSwiGLUArgs{Grad: x(hidden), FwdInput: x(2 * hidden), Output: x(2 * hidden)}
		}),
		memoryOp(b, "residual_add", norm.ResidualAdd, func() norm.ResidualAddArgs {
			return norm.ResidualAddArgs{A: x(hidden), B: x(hidden), Output: x(hidden)}
		}),
		memoryOp(b, "fused_rope_forward", rope.FusedRopeForward, b.ropeArgs),
		memoryOp(b, "fused_rope_backward", rope.FusedRopeBackward, b.ropeArgs),
		memoryOp(b, "fused_qkv_rope_forward", rope.FusedQKVRopeForward, b.projectionArgs),
		memoryOp(b, "fused_qkv_rope_backward", rope.FusedQKVRopeBackward, b.projectionArgs),
		memoryOp(b, "multi_tensor_adam", optim.MultiTensorAdam, func() optim.MultiTensorAdamArgs {
			return adamArgs(flag(), b.lists(4, parameters))
		}),
		memoryOp(b, "multi_tensor_adam/64_tensors", optim.MultiTensorAdam, func() optim.MultiTensorAdamArgs {
			sizes := make([]int, 64)
			for i := range sizes {
				sizes[i] = parameters / len(sizes)
			}
			return adamArgs(flag(), b.lists(4, sizes...))
		}),
		memoryOp(b, "multi_tensor_adam_fp8", optim.MultiTensorAdamFP8, func() optim.MultiTensorAdamArgs {
			lists := append(b.lists(5, parameters), b.lists(3, 1)...)
			lists[1] = []*tensor.Tensor{dense(make([]tensor.Float8E4M3, parameters), parameters)}
			return adamArgs(flag(), lists)
		}),
		memoryOp(b, "multi_tensor_l2norm", optim.MultiTensorL2Norm, func() optim.MultiTensorL2NormArgs {
			return optim.MultiTensorL2NormArgs{NoopFlag: flag(), TensorLists: b.lists(1, parameters), Norm: b.floats(1)}
		}),
		memoryOp(b, "multi_tensor_scale", optim.MultiTensorScale, func() optim.MultiTensorScaleArgs {
			return optim.MultiTensorScaleArgs{NoopFlag: flag(), TensorLists: b.lists(2, parameters), Scale: 0.5}
		}),
		memoryOp(b, "multi_tensor_scale/in_place", optim.MultiTensorScale, func() optim.MultiTensorScaleArgs {
			list := b.lists(1, parameters)[0]
			return optim.MultiTensorScaleArgs{NoopFlag: flag(), TensorLists: [][]*tensor.Tensor{list, list}, Scale: 1}
		}),
		memoryOp(b, "embedding_fwd", embedding.EmbeddingFwd, func() embedding.EmbeddingFwdArgs {
			return embedding.EmbeddingFwdArgs{Indices: b.indexes(tokens, vocab), Weight: b.floats(vocab, hidden), Output: x(hidden)}
		}),
		memoryOp(b, "embedding_bwd", embedding.EmbeddingBwd, func() embedding.EmbeddingBwdArgs {
			return embedding.EmbeddingBwdArgs{Indices: b.indexes(tokens, vocab), Grad: x(hidden), DWeight: b.floats(vocab, hidden)}
		}),
	}
	for _, width := range []int{hidden, vocab} {
		name := strconv.Itoa(width)
		all = append(all,
			memoryOp(b, "cross_entropy_fwd/"+name, loss.CrossEntropyFwd, func() loss.CrossEntropyFwdArgs {
				return loss.CrossEntropyFwdArgs{
					Logits: x(width), Targets: b.indexes(tokens, width), Losses: b.floats(tokens), LSE: b.floats(tokens),
					IgnoreIndex: ignored, Saved: saved,
				}
			}),
			memoryOp(b, "cross_entropy_bwd/"+name, loss.CrossEntropyBwd, func() loss.CrossEntropyBwdArgs {
				return loss.CrossEntropyBwdArgs{
					Logits: x(width), Targets: b.indexes(tokens, width), LSE: b.floats(tokens), DLosses: b.floats(tokens),
					DLogits: x(width), IgnoreIndex: ignored, Saved: saved,
				}
			}))
	}
	return all
}

const sequences = 4 // whose heads are turned

// ropeArgs turn the heads of some sequences.
func (b *bench) ropeArgs() rope.FusedRopeArgs {
	shape := []int{sequences, tokens / sequences, hidden / headDim, headDim}
	return rope.FusedRopeArgs{Input: b.floats(shape...), Output: b.floats(shape...), Freqs: b.angles(), QKVFormat: attention.BSHD}
}

// projectionArgs turn the heads of a fused projection, with two heads of queries for one of keys.
func (b *bench) projectionArgs() rope.FusedQKVRopeArgs {
	const groups, members = hidden / headDim / 2, 2
	heads := func(n, d int) *tensor.Tensor { return b.floats(sequences, tokens/sequences, n, d) }
	freqs := b.angles()
	return rope.FusedQKVRopeArgs{
		QKV: heads(groups, (members+2)*headDim), QFreqs: freqs, KFreqs: freqs, Q: heads(groups*members, headDim), K: heads(groups, headDim),
		V: heads(groups, headDim), QKVSplitArgList: []int{members * headDim, headDim, headDim}, QKVFormat: attention.BSHD,
	}
}

// angles makes the angles of the positions of a sequence, whose second halves repeat the first.
func (b *bench) angles() *tensor.Tensor {
	freqs := make([]float32, tokens/sequences*headDim)
	for i := range freqs {
		freqs[i] = b.rng.Float32()
		if half := i % headDim; half >= headDim/2 {
			freqs[i] = freqs[i-headDim/2]
		}
	}
	return dense(freqs, tokens/sequences, headDim)
}

func adamArgs(flag *tensor.Tensor, lists [][]*tensor.Tensor) optim.MultiTensorAdamArgs {
	return optim.MultiTensorAdamArgs{
		NoopFlag: flag, TensorLists: lists, LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8,
		Step: 10, Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
	}
}

// lists makes n lists of tensors of these sizes.
func (b *bench) lists(n int, sizes ...int) [][]*tensor.Tensor {
	all := make([][]*tensor.Tensor, n)
	for i := range all {
		for _, size := range sizes {
			all[i] = append(all[i], b.floats(size))
		}
	}
	return all
}

// memoryOp compares an op with the loop that moves the same bytes.
func memoryOp[A any](b *bench, name string, op *opregistry.Op[A], args func() A) contest {
	return contest{group: "memory", name: name, unit: "GB/s", prepare: func() (match, error) {
		a := args()
		if err := op.Validate(a); err != nil {
			return match{}, err
		}
		t := trafficOf(op.Operands(a))
		l := loopFor(t)
		run := implOf(b.flagos, op)
		return match{
			ours: timed(b.now, func() error { return run(b.exec, a) }), oursWork: 1e-9 * float64(t.read+t.written),
			peer: timed(b.now, func() error { l.run(b.pool); return nil }), peerWork: 1e-9 * float64(l.traffic()), peerName: l.name,
		}, nil
	}}
}
