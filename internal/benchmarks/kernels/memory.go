package main

import (
	"strconv"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
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
	all := []contest{
		memoryOp(b, "gelu", ops.GELU, func() ops.ActivationArgs {
			return ops.ActivationArgs{Input: x(), Output: x()}
		}),
		memoryOp(b, "dgelu", ops.DGELU, func() ops.DActivationArgs {
			return ops.DActivationArgs{Grad: x(), FwdInput: x(), Output: x()}
		}),
		memoryOp(b, "dbias_dgelu", ops.DBiasDGELU, func() ops.DBiasDActivationArgs {
			return ops.DBiasDActivationArgs{Grad: x(), FwdInput: x(), Output: x(), DBias: b.floats(hidden)}
		}),
	}
	for i := range all {
		all[i].group = "gelu"
	}
	return all
}

// memoryOps are the memory-bound ops on [2048, 512].
func (b *bench) memoryOps() []contest {
	x := func(cols int) *tensor.Tensor { return b.floats(tokens, cols) }
	flag := func() *tensor.Tensor { return dense([]int32{0}, 1) }
	saved := &opregistry.Saved{}
	all := []contest{
		memoryOp(b, "rmsnorm_fwd", ops.RMSNormFwd, func() ops.RMSNormFwdArgs {
			return ops.RMSNormFwdArgs{Input: x(hidden), Weight: b.floats(hidden), Output: x(hidden), RSigma: x(1), Eps: 1e-5, Saved: saved}
		}),
		memoryOp(b, "rmsnorm_bwd", ops.RMSNormBwd, func() ops.RMSNormBwdArgs {
			return ops.RMSNormBwdArgs{
				DZ: x(hidden), X: x(hidden), RSigma: x(1), Gamma: b.floats(hidden), DX: x(hidden), DGamma: b.floats(hidden), Saved: saved,
			}
		}),
		memoryOp(b, "rmsnorm_bwd_add", ops.RMSNormBwdAdd, func() ops.RMSNormBwdAddArgs {
			return ops.RMSNormBwdAddArgs{
				DZ: x(hidden), X: x(hidden), Add: x(hidden), RSigma: x(1), Gamma: b.floats(hidden), DX: x(hidden), DGamma: b.floats(hidden),
			}
		}),
		memoryOp(b, "layernorm_fwd", ops.LayerNormFwd, func() ops.LayerNormFwdArgs {
			return ops.LayerNormFwdArgs{
				Input: x(hidden), Weight: b.floats(hidden), Bias: b.floats(hidden), Output: x(hidden), Mu: x(1), RSigma: x(1), Eps: 1e-5,
				Saved: saved,
			}
		}),
		memoryOp(b, "layernorm_bwd", ops.LayerNormBwd, func() ops.LayerNormBwdArgs {
			return ops.LayerNormBwdArgs{
				DZ: x(hidden), X: x(hidden), Mu: x(1), RSigma: x(1), Gamma: b.floats(hidden), DX: x(hidden), DGamma: b.floats(hidden),
				DBeta: b.floats(hidden), Saved: saved,
			}
		}),
		memoryOp(b, "swiglu", ops.SwiGLU, func() ops.SwiGLUArgs {
			return ops.SwiGLUArgs{Input: x(2 * hidden), Output: x(hidden)}
		}),
		memoryOp(b, "dswiglu", ops.DSwiGLU, func() ops.DSwiGLUArgs {
			return ops.DSwiGLUArgs{Grad: x(hidden), FwdInput: x(2 * hidden), Output: x(2 * hidden)}
		}),
		memoryOp(b, "residual_add", ops.ResidualAdd, func() ops.ResidualAddArgs {
			return ops.ResidualAddArgs{A: x(hidden), B: x(hidden), Output: x(hidden)}
		}),
		memoryOp(b, "fused_rope_forward", ops.FusedRopeForward, b.ropeArgs),
		memoryOp(b, "fused_rope_backward", ops.FusedRopeBackward, b.ropeArgs),
		memoryOp(b, "multi_tensor_adam", ops.MultiTensorAdam, func() ops.MultiTensorAdamArgs {
			return adamArgs(flag(), b.lists(4, parameters))
		}),
		memoryOp(b, "multi_tensor_adam/64_tensors", ops.MultiTensorAdam, func() ops.MultiTensorAdamArgs {
			sizes := make([]int, 64)
			for i := range sizes {
				sizes[i] = parameters / len(sizes)
			}
			return adamArgs(flag(), b.lists(4, sizes...))
		}),
		memoryOp(b, "multi_tensor_l2norm", ops.MultiTensorL2Norm, func() ops.MultiTensorL2NormArgs {
			return ops.MultiTensorL2NormArgs{NoopFlag: flag(), TensorLists: b.lists(1, parameters), Norm: b.floats(1)}
		}),
		memoryOp(b, "multi_tensor_scale", ops.MultiTensorScale, func() ops.MultiTensorScaleArgs {
			return ops.MultiTensorScaleArgs{NoopFlag: flag(), TensorLists: b.lists(2, parameters), Scale: 0.5}
		}),
		memoryOp(b, "multi_tensor_scale/in_place", ops.MultiTensorScale, func() ops.MultiTensorScaleArgs {
			list := b.lists(1, parameters)[0]
			return ops.MultiTensorScaleArgs{NoopFlag: flag(), TensorLists: [][]*tensor.Tensor{list, list}, Scale: 1}
		}),
		memoryOp(b, "embedding_fwd", ops.EmbeddingFwd, func() ops.EmbeddingFwdArgs {
			return ops.EmbeddingFwdArgs{Indices: b.indexes(tokens, vocab), Weight: b.floats(vocab, hidden), Output: x(hidden)}
		}),
		memoryOp(b, "embedding_bwd", ops.EmbeddingBwd, func() ops.EmbeddingBwdArgs {
			return ops.EmbeddingBwdArgs{Indices: b.indexes(tokens, vocab), Grad: x(hidden), DWeight: b.floats(vocab, hidden)}
		}),
	}
	for _, width := range []int{hidden, vocab} {
		name := strconv.Itoa(width)
		all = append(all,
			memoryOp(b, "cross_entropy_fwd/"+name, ops.CrossEntropyFwd, func() ops.CrossEntropyFwdArgs {
				return ops.CrossEntropyFwdArgs{
					Logits: x(width), Targets: b.indexes(tokens, width), Losses: b.floats(tokens), LSE: b.floats(tokens),
					IgnoreIndex: ignored, Saved: saved,
				}
			}),
			memoryOp(b, "cross_entropy_bwd/"+name, ops.CrossEntropyBwd, func() ops.CrossEntropyBwdArgs {
				return ops.CrossEntropyBwdArgs{
					Logits: x(width), Targets: b.indexes(tokens, width), LSE: b.floats(tokens), DLosses: b.floats(tokens),
					DLogits: x(width), IgnoreIndex: ignored, Saved: saved,
				}
			}))
	}
	return all
}

// ropeArgs turn the heads of four sequences.
func (b *bench) ropeArgs() ops.FusedRopeArgs {
	const sequences = 4
	freqs := make([]float32, tokens/sequences*headDim)
	for i := range freqs {
		freqs[i] = b.rng.Float32()
		if half := i % headDim; half >= headDim/2 {
			freqs[i] = freqs[i-headDim/2]
		}
	}
	shape := []int{sequences, tokens / sequences, hidden / headDim, headDim}
	return ops.FusedRopeArgs{
		Input: b.floats(shape...), Output: b.floats(shape...), Freqs: dense(freqs, tokens/sequences, headDim), QKVFormat: ops.BSHD,
	}
}

func adamArgs(flag *tensor.Tensor, lists [][]*tensor.Tensor) ops.MultiTensorAdamArgs {
	return ops.MultiTensorAdamArgs{
		NoopFlag: flag, TensorLists: lists, LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8,
		Step: 10, Mode: ops.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
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
