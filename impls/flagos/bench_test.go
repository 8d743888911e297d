package flagos_test

import (
	"fmt"
	"testing"

	"github.com/primus-fl/primus/internal/parallel"
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

// The shapes of one micro-batch of a small language model.
const (
	benchRows  = 2048
	benchCols  = 512
	benchVocab = 4096
)

func BenchmarkRMSNormFwd(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, norm.RMSNormFwd, norm.RMSNormFwdArgs{
		Input: m.plain(benchRows, benchCols), Weight: m.plain(benchCols), Output: m.plain(benchRows, benchCols),
		RSigma: m.plain(benchRows), Eps: 1e-5, Saved: &opregistry.Saved{},
	})
}

func BenchmarkRMSNormBwd(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, norm.RMSNormBwd, norm.RMSNormBwdArgs{
		DZ: m.plain(benchRows, benchCols), X: m.plain(benchRows, benchCols), RSigma: m.plain(benchRows),
		Gamma: m.plain(benchCols), DX: m.plain(benchRows, benchCols), DGamma: m.plain(benchCols), Saved: &opregistry.Saved{},
	})
}

func BenchmarkSwiGLU(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, activation.SwiGLU, activation.SwiGLUArgs{Input: m.plain(benchRows, 2*benchCols), Output: m.plain(benchRows, benchCols)})
}

func BenchmarkDSwiGLU(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, activation.DSwiGLU, activation.DSwiGLUArgs{
		Grad: m.plain(benchRows, benchCols), FwdInput: m.plain(benchRows, 2*benchCols), Output: m.plain(benchRows, 2*benchCols),
	})
}

func BenchmarkResidualAdd(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, norm.ResidualAdd, norm.ResidualAddArgs{
		A: m.plain(benchRows, benchCols), B: m.plain(benchRows, benchCols), Output: m.plain(benchRows, benchCols),
	})
}

func BenchmarkFusedRopeForward(b *testing.B) {
	for _, batch := range []int{1, 4} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			m := newMaker(b, 1, true)
			freqs := m.plain(benchRows/batch, 64)
			repeatHalves(m, freqs)
			bench(b, rope.FusedRopeForward, rope.FusedRopeArgs{
				Input: m.plain(benchRows/batch, batch, 8, 64), Output: m.plain(benchRows/batch, batch, 8, 64),
				Freqs: freqs, QKVFormat: attention.SBHD,
			})
		})
	}
}

func BenchmarkEmbeddingFwd(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, embedding.EmbeddingFwd, embedding.EmbeddingFwdArgs{
		Indices: m.indexes(benchRows, benchVocab, 0), Weight: m.plain(benchVocab, benchCols), Output: m.plain(benchRows, benchCols),
	})
}

func BenchmarkEmbeddingBwd(b *testing.B) {
	for _, accumulate := range []bool{false, true} {
		b.Run(fmt.Sprintf("accumulate=%v", accumulate), func(b *testing.B) {
			m := newMaker(b, 1, true)
			bench(b, embedding.EmbeddingBwd, embedding.EmbeddingBwdArgs{
				Indices: m.indexes(benchRows, benchVocab, 0), Grad: m.plain(benchRows, benchCols),
				DWeight: m.plain(benchVocab, benchCols), Accumulate: accumulate,
			})
		})
	}
}

func BenchmarkCrossEntropyFwd(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, loss.CrossEntropyFwd, loss.CrossEntropyFwdArgs{
		Logits: m.plain(benchRows, benchVocab), Targets: m.indexes(benchRows, benchVocab, 0),
		Losses: m.plain(benchRows), LSE: m.plain(benchRows), IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	})
}

func BenchmarkCrossEntropyBwd(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, loss.CrossEntropyBwd, loss.CrossEntropyBwdArgs{
		Logits: m.plain(benchRows, benchVocab), Targets: m.indexes(benchRows, benchVocab, 0), LSE: m.plain(benchRows),
		DLosses: m.plain(benchRows), DLogits: m.plain(benchRows, benchVocab), IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	})
}

// benchParameters is the number of elements of the optimizer's benchmarks.
const benchParameters = 10_000_000

func BenchmarkMultiTensorAdam(b *testing.B) {
	m := newMaker(b, 1, true)
	lists := make([][]*tensor.Tensor, 4)
	for l := range lists {
		lists[l] = []*tensor.Tensor{m.plain(benchParameters)}
	}
	a := optim.MultiTensorAdamArgs{
		NoopFlag: m.dense(tensor.I32, 1), TensorLists: lists, LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8,
		Step: 10, Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
	}
	bench(b, optim.MultiTensorAdam, a)
}

func BenchmarkMultiTensorL2Norm(b *testing.B) {
	m := newMaker(b, 1, true)
	bench(b, optim.MultiTensorL2Norm, optim.MultiTensorL2NormArgs{
		NoopFlag: m.dense(tensor.I32, 1), TensorLists: [][]*tensor.Tensor{{m.plain(benchParameters)}}, Norm: m.plain(1),
	})
}

func BenchmarkMultiTensorScale(b *testing.B) {
	m := newMaker(b, 1, true)
	in := []*tensor.Tensor{m.plain(benchParameters)}
	bench(b, optim.MultiTensorScale, optim.MultiTensorScaleArgs{
		NoopFlag: m.dense(tensor.I32, 1), TensorLists: [][]*tensor.Tensor{in, in}, Scale: 1,
	})
}

// plain makes a dense tensor of values that stay in range however often an op runs over them.
func (m *maker) plain(shape ...int) *tensor.Tensor {
	m.t.Helper()
	values := make([]float32, tensor.Shape(shape).NumElements())
	for i := range values {
		values[i] = m.rng.Float32()
	}
	x, err := tensor.FromSlice(values, shape...)
	if err != nil {
		m.t.Fatal(err)
	}
	return x
}

// bench runs the impl of an op on one and two workers and counts the bytes of
// every operand once for a read and once for a write.
func bench[A any](b *testing.B, op *opregistry.Op[A], a A) {
	b.Helper()
	if err := op.Validate(a); err != nil {
		b.Fatal(err)
	}
	bytes := 0
	for _, o := range op.Operands(a) {
		n := o.Tensor.NumElements() * o.Tensor.DType().Size()
		if o.Access == opregistry.AccessUpdate {
			n *= 2
		}
		bytes += n
	}
	run := runOf(b, fastSource, op)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			pool := parallel.New(workers)
			defer pool.Close()
			e := opregistry.NewExec(pool, 0)
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				if err := run(e, a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
