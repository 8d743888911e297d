package flagos_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// randomCases is how many calls of each op are compared with the reference in each dtype.
func randomCases() int { return primustest.Cases(120, 1000) }

// random makes the operands of one call; equal seeds make equal operands.
type random struct {
	*rand.Rand
	t     *testing.T
	dtype tensor.DType // of stored
	next  uint64
}

func (r *random) between(lo, hi int) int { return lo + r.IntN(hi-lo+1) }

func (r *random) f32(shape ...int) *tensor.Tensor { return r.of(tensor.F32, shape...) }

func (r *random) stored(shape ...int) *tensor.Tensor { return r.of(r.dtype, shape...) }

func (r *random) of(d tensor.DType, shape ...int) *tensor.Tensor {
	r.next++
	return tensortest.Random(r.t, r.next, d, shape...)
}

func (r *random) indexes(n, limit int) *tensor.Tensor {
	v := make([]int32, n)
	for i := range v {
		v[i] = r.Int32N(int32(limit))
	}
	x, err := tensor.FromSlice(v)
	require.NoError(r.t, err)
	return x
}

func (r *random) saved() *opregistry.Saved { return new(opregistry.Saved) }

// compare runs calls of random shapes on flagos and on the reference.
func compare[A any](t *testing.T, op *opregistry.Op[A], make func(*random) A) {
	for _, d := range dtypes {
		t.Run(op.Name()+"/"+d.String(), func(t *testing.T) {
			t.Parallel()
			compareOf(t, op, d, make)
		})
	}
}

func compareOf[A any](t *testing.T, op *opregistry.Op[A], d tensor.DType, make func(*random) A) {
	pool := parallel.New(2)
	defer pool.Close()
	x := opregistry.NewExec(pool, 0)
	fast, slow := runOf(t, fastSource, op), runOf(t, slowSource, op)
	for i := range uint64(randomCases()) {
		args := func() A {
			return make(&random{Rand: rand.New(rand.NewPCG(i, 7)), t: t, dtype: d, next: i << 8})
		}
		want, got := args(), args()
		require.NoError(t, op.Validate(got))
		require.NoError(t, slow(x, want))
		require.NoError(t, fast(x, got), "case %d: %+v", i, got)
		requireSame(t, op, want, got, fmt.Sprintf("case %d", i))
	}
}

// requireSame compares what two calls wrote.
func requireSame[A any](t *testing.T, op *opregistry.Op[A], want, got A, what string) {
	t.Helper()
	expected := op.Operands(want)
	for k, o := range op.Operands(got) {
		if o.Access == opregistry.AccessRead {
			continue
		}
		values := expected[k].Tensor.Float64s()
		tol := op.Tolerance().Of(o.Tensor.DType())
		largest := 1.0
		for _, v := range values {
			if !math.IsInf(v, 0) {
				largest = max(largest, math.Abs(v))
			}
		}
		tol.Abs *= largest
		d, err := tensor.Compare(values, o.Tensor, tol)
		require.NoError(t, err)
		require.Zero(t, d.Beyond, "%s: operand %s of %s: worst %v", what, o.Name, describe(op.Operands(got)), d.Worst)
	}
}

func describe(operands []opregistry.Operand) string {
	text := ""
	for _, o := range operands {
		text += fmt.Sprintf("%s %v ", o.Name, o.Tensor)
	}
	return text
}

func TestRandomShapesEqualTheReference(t *testing.T) {
	compare(t, gemm.GenericGemm, func(r *random) gemm.GenericGemmArgs {
		m, n, k := r.between(1, 40), r.between(1, 70), r.between(0, 50)
		a := gemm.GenericGemmArgs{TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0, D: r.stored(m, n), Accumulate: r.IntN(2) == 0}
		a.A, a.B = r.stored(k, n), r.stored(m, k)
		if a.TransA {
			a.A = r.stored(n, k)
		}
		if a.TransB {
			a.B = r.stored(k, m)
		}
		if r.IntN(2) == 0 {
			a.Alpha = opregistry.Float(r.Float32()*4 - 2)
		}
		return a
	})
	rows := func(r *random) (rows, cols int) { return r.between(0, 20), r.between(1, 300) }
	compare(t, norm.RMSNormFwd, func(r *random) norm.RMSNormFwdArgs {
		m, n := rows(r)
		return norm.RMSNormFwdArgs{
			Input: r.stored(m, n), Weight: r.stored(n), Output: r.stored(m, n), RSigma: r.f32(m), Eps: 1e-5,
			ZeroCenteredGamma: r.IntN(2) == 0, Saved: r.saved(),
		}
	})
	compare(t, norm.RMSNormBwd, func(r *random) norm.RMSNormBwdArgs {
		m, n := rows(r)
		return norm.RMSNormBwdArgs{
			DZ: r.stored(m, n), X: r.stored(m, n), RSigma: r.f32(m), Gamma: r.stored(n), DX: r.stored(m, n), DGamma: r.stored(n),
			ZeroCenteredGamma: r.IntN(2) == 0, Saved: r.saved(),
		}
	})
	compare(t, norm.RMSNormBwdAdd, func(r *random) norm.RMSNormBwdAddArgs {
		m, n := rows(r)
		return norm.RMSNormBwdAddArgs{
			DZ: r.stored(m, n), X: r.stored(m, n), Add: r.stored(m, n), RSigma: r.f32(m), Gamma: r.stored(n), DX: r.stored(m, n),
			DGamma: r.stored(n), ZeroCenteredGamma: r.IntN(2) == 0,
		}
	})
	compare(t, norm.LayerNormFwd, func(r *random) norm.LayerNormFwdArgs {
		m, n := rows(r)
		return norm.LayerNormFwdArgs{
			Input: r.stored(m, n+1), Weight: r.stored(n + 1), Bias: r.stored(n + 1), Output: r.stored(m, n+1), Mu: r.f32(m), RSigma: r.f32(m),
			Eps: 1e-5, ZeroCenteredGamma: r.IntN(2) == 0, Saved: r.saved(),
		}
	})
	compare(t, norm.LayerNormBwd, func(r *random) norm.LayerNormBwdArgs {
		m, n := rows(r)
		return norm.LayerNormBwdArgs{
			DZ: r.stored(m, n), X: r.stored(m, n), Mu: r.f32(m), RSigma: r.f32(m), Gamma: r.stored(n), DX: r.stored(m, n), DGamma: r.stored(n),
			DBeta: r.stored(n), ZeroCenteredGamma: r.IntN(2) == 0, Saved: r.saved(),
		}
	})
	compare(t, activation.SwiGLU, func(r *random) activation.SwiGLUArgs {
		m, n := rows(r)
		return activation.SwiGLUArgs{Input: r.stored(m, 2*n), Output: r.stored(m, n)}
	})
	compare(t, activation.DSwiGLU, func(r *random) activation.DSwiGLUArgs {
		m, n := rows(r)
		return activation.DSwiGLUArgs{Grad: r.stored(m, n), FwdInput: r.stored(m, 2*n), Output: r.stored(m, 2*n)}
	})
	compare(t, norm.ResidualAdd, func(r *random) norm.ResidualAddArgs {
		m, n := rows(r)
		return norm.ResidualAddArgs{A: r.stored(m, n), B: r.stored(m, n), Output: r.stored(m, n)}
	})
	forward := func(r *random) attention.FusedAttnFwdArgs {
		groups := r.between(1, 3)
		a := r.forward(attention.AttnDims{
			Batch: r.between(1, 2), SeqQ: r.between(1, 40), SeqKV: r.between(1, 40),
			Heads: groups * r.between(1, 3), Groups: groups, DimQK: 4 * r.between(1, 8), DimV: 4 * r.between(1, 8),
		}, []attention.MaskType{attention.NoMask, attention.CausalMask, attention.CausalBottomRightMask}[r.IntN(3)])
		if r.IntN(2) == 0 {
			r.options(&a)
		}
		return a
	}
	compare(t, attention.FusedAttnFwd, forward)
	compare(t, attention.FusedAttnBwd, func(r *random) attention.FusedAttnBwdArgs { return r.backward(forward(r)) })
	compare(t, embedding.EmbeddingFwd, func(r *random) embedding.EmbeddingFwdArgs {
		tokens, vocab, n := r.between(0, 60), r.between(1, 50), r.between(1, 70)
		return embedding.EmbeddingFwdArgs{Indices: r.indexes(tokens, vocab), Weight: r.stored(vocab, n), Output: r.stored(tokens, n)}
	})
	compare(t, embedding.EmbeddingBwd, func(r *random) embedding.EmbeddingBwdArgs {
		tokens, vocab, n := r.between(0, 60), r.between(1, 50), r.between(1, 70)
		return embedding.EmbeddingBwdArgs{Grad: r.stored(tokens, n), Indices: r.indexes(tokens, vocab), DWeight: r.stored(vocab, n), Accumulate: r.IntN(2) == 0}
	})
	compare(t, loss.CrossEntropyFwd, func(r *random) loss.CrossEntropyFwdArgs {
		tokens, vocab := r.between(0, 20), r.between(1, 300)
		return loss.CrossEntropyFwdArgs{
			Logits: r.stored(tokens, vocab), Targets: r.indexes(tokens, vocab), Losses: r.f32(tokens), LSE: r.f32(tokens),
			IgnoreIndex: -100, Saved: r.saved(),
		}
	})
	compare(t, loss.CrossEntropyBwd, func(r *random) loss.CrossEntropyBwdArgs {
		tokens, vocab := r.between(0, 20), r.between(1, 300)
		return loss.CrossEntropyBwdArgs{
			Logits: r.stored(tokens, vocab), Targets: r.indexes(tokens, vocab), LSE: r.f32(tokens), DLosses: r.f32(tokens),
			DLogits: r.stored(tokens, vocab), IgnoreIndex: -100, Saved: r.saved(),
		}
	})
	compare(t, loss.LinearCrossEntropyFwd, func(r *random) loss.LinearCrossEntropyFwdArgs {
		tokens, h, vocab := r.between(0, 20), r.between(1, 40), r.between(1, 300)
		a := loss.LinearCrossEntropyFwdArgs{
			Hidden: r.stored(tokens, h), Weight: r.stored(vocab, h), Targets: r.indexes(tokens, vocab), Losses: r.f32(tokens), LSE: r.f32(tokens),
			IgnoreIndex: -100, Saved: r.saved(),
		}
		if r.IntN(2) == 0 {
			a.DLosses, a.DHidden, a.DWeight = r.f32(tokens), r.stored(tokens, h), r.stored(vocab, h)
		}
		return a
	})
	compare(t, loss.LinearCrossEntropyBwd, func(r *random) loss.LinearCrossEntropyBwdArgs {
		tokens, h, vocab := r.between(0, 20), r.between(1, 40), r.between(1, 300)
		return loss.LinearCrossEntropyBwdArgs{
			Hidden: r.stored(tokens, h), Weight: r.stored(vocab, h), Targets: r.indexes(tokens, vocab), LSE: r.f32(tokens), DLosses: r.f32(tokens),
			DHidden: r.stored(tokens, h), DWeight: r.stored(vocab, h), IgnoreIndex: -100, Saved: r.saved(),
		}
	})
}
