package main

import (
	"reflect"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// memoryCases returns the ops of a training step of 2,048 tokens that memory bounds.
func (b *bench) memoryCases() []benchCase {
	const tokens, seq, heads, dim, hidden, ffn, vocab, weights, experts = 2048, 256, 9, 32, 288, 768, 512, 1 << 21, 8
	x, y, dy, gamma := b.floats(tokens, hidden), b.floats(tokens, hidden), b.floats(tokens, hidden), b.floats(hidden)
	rows, wide, narrow := b.floats(tokens), b.floats(tokens, 2*ffn), b.floats(tokens, ffn)
	index, flag := b.integers(vocab, tokens), b.integers(1, 1)
	g, p, m, v := b.floats(weights), b.floats(weights), b.floats(weights), b.floats(weights)
	q := b.floats(tokens/seq, seq, heads, dim)
	return []benchCase{
		bandwidth(b, norm.RMSNormFwd, norm.RMSNormFwdArgs{Input: x, Weight: gamma, Output: y, RSigma: rows, Eps: 1e-5, Saved: new(opregistry.Saved)}),
		bandwidth(b, norm.RMSNormBwd, norm.RMSNormBwdArgs{DZ: dy, X: x, RSigma: rows, Gamma: gamma, DX: y, DGamma: b.floats(hidden), Saved: new(opregistry.Saved)}),
		bandwidth(b, norm.LayerNormFwd, norm.LayerNormFwdArgs{Input: x, Weight: gamma, Bias: b.floats(hidden), Output: y, Mu: b.floats(tokens), RSigma: rows, Eps: 1e-5, Saved: new(opregistry.Saved)}),
		bandwidth(b, norm.ResidualAdd, norm.ResidualAddArgs{A: x, B: dy, Output: y}),
		bandwidth(b, activation.SwiGLU, activation.SwiGLUArgs{Input: wide, Output: narrow}),
		bandwidth(b, activation.DSwiGLU, activation.DSwiGLUArgs{Grad: narrow, FwdInput: wide, Output: b.floats(tokens, 2*ffn)}),
		bandwidth(b, activation.GELU, activation.ActivationArgs{Input: wide, Output: b.floats(tokens, 2*ffn)}),
		bandwidth(b, activation.DBiasDGELU, activation.DBiasDActivationArgs{Grad: wide, FwdInput: b.floats(tokens, 2*ffn), DBias: b.floats(2 * ffn), Output: b.floats(tokens, 2*ffn)}),
		bandwidth(b, rope.FusedRopeForward, rope.FusedRopeArgs{Input: q, Freqs: b.floats(seq, 1, 1, dim), Output: b.floats(tokens/seq, seq, heads, dim), QKVFormat: attention.BSHD}),
		bandwidth(b, embedding.EmbeddingFwd, embedding.EmbeddingFwdArgs{Indices: index, Weight: b.floats(vocab, hidden), Output: y}),
		bandwidth(b, embedding.EmbeddingBwd, embedding.EmbeddingBwdArgs{Grad: dy, Indices: index, DWeight: b.floats(vocab, hidden)}),
		bandwidth(b, loss.CrossEntropyFwd, loss.CrossEntropyFwdArgs{Logits: b.floats(tokens, vocab), Targets: index, Losses: rows, LSE: b.floats(tokens), IgnoreIndex: -100, Saved: new(opregistry.Saved)}),
		bandwidth(b, loss.CrossEntropyBwd, loss.CrossEntropyBwdArgs{Logits: b.floats(tokens, vocab), Targets: index, LSE: b.floats(tokens), DLosses: rows, DLogits: b.floats(tokens, vocab), IgnoreIndex: -100, Saved: new(opregistry.Saved)}),
		bandwidth(b, dropout.DropoutFwd, dropout.DropoutFwdArgs{Input: x, Out: y, Mask: b.bytes(tokens * hidden / 8), DropoutProbability: 0.1, Saved: new(opregistry.Saved)}),
		bandwidth(b, moe.MoEPermuteFwd, moe.MoEPermuteFwdArgs{Input: x, Indices: b.integers(experts, tokens, 2), Output: b.floats(2*tokens, hidden), RowIDMap: b.integers(1, 2*tokens), Saved: new(opregistry.Saved)}),
		bandwidth(b, optim.MultiTensorAdam, optim.MultiTensorAdamArgs{NoopFlag: flag, TensorLists: [][]*tensor.Tensor{{g}, {p}, {m}, {v}}, LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Step: 2, Mode: optim.AdamDecay, BiasCorrection: true}),
		bandwidth(b, optim.MultiTensorL2Norm, optim.MultiTensorL2NormArgs{NoopFlag: flag, TensorLists: [][]*tensor.Tensor{{g}}, Norm: b.floats(1)}),
		bandwidth(b, optim.MultiTensorScale, optim.MultiTensorScaleArgs{NoopFlag: flag, TensorLists: [][]*tensor.Tensor{{g}, {p}}, Scale: 1}),
	}
}

// bandwidth is a call whose work is the bytes of its operands.
func bandwidth[A any](b *bench, op *opregistry.Op[A], host A) benchCase {
	c := benchCase{name: "memory/" + op.Name(), unit: "GB/s"}
	onDevice := host
	var one *tensor.Tensor
	b.putAll(&c, reflect.ValueOf(&onDevice).Elem())
	for _, t := range c.owned {
		c.work += float64(t.NumElements() * t.DType().Size())
		one = t
	}
	c.sides = []side{
		onQueue(b, "opencl", b.opencl, op, onDevice, one, nil),
		{name: "flagos", call: func() error { return implOf(b.flagos, op)(b.exec, host) }},
	}
	return c
}

// putAll replaces the tensors in arguments by copies on the device.
func (b *bench) putAll(c *benchCase, v reflect.Value) {
	switch t, ok := v.Interface().(*tensor.Tensor); {
	case ok && t != nil:
		v.Set(reflect.ValueOf(b.put(c, t)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				b.putAll(c, v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		for i := range list.Len() {
			b.putAll(c, list.Index(i))
		}
		v.Set(list)
	}
}

// integers makes a tensor of integers below a limit in host memory.
func (b *bench) integers(limit int32, shape ...int) *tensor.Tensor {
	values := make([]int32, tensor.Shape(shape).NumElements())
	for i := range values {
		values[i] = b.rng.Int32N(limit)
	}
	return onHost(values, shape...)
}

// bytes makes a tensor of bytes in host memory.
func (b *bench) bytes(n int) *tensor.Tensor { return onHost(make([]byte, n)) }

func onHost[T tensor.Element](values []T, shape ...int) *tensor.Tensor {
	t, err := tensor.FromSlice(values, shape...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}
