package flagos_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

// outputCase is a call of linear_cross_entropy_fwd whose rows are processed in several steps.
func outputCase(t *testing.T, rows, hidden, vocab int) loss.LinearCrossEntropyFwdArgs {
	t.Helper()
	r := rand.New(rand.NewPCG(3, uint64(rows)))
	fill := func(f float64, shape ...int) *tensor.Tensor {
		data := make([]float32, tensor.Shape(shape).NumElements())
		for i := range data {
			data[i] = float32(f * r.NormFloat64())
		}
		x, err := tensor.FromSlice(data, shape...)
		require.NoError(t, err)
		return x
	}
	ids := make([]int32, rows)
	for i := range ids {
		ids[i] = int32(r.IntN(vocab))
	}
	ids[rows/2] = -100
	targets, err := tensor.FromSlice(ids)
	require.NoError(t, err)
	return loss.LinearCrossEntropyFwdArgs{
		Hidden: fill(1, rows, hidden), Weight: fill(0.5, vocab, hidden), Targets: targets, Losses: fill(0, rows), LSE: fill(0, rows),
		DLosses: fill(1, rows), DHidden: fill(0, rows, hidden), DWeight: fill(1, vocab, hidden), IgnoreIndex: -100, Accumulate: true, Saved: new(opregistry.Saved),
	}
}

// The losses and gradients are those of the ops that keep the logits, with any number of workers
// the same bits, and the two forms of the gradient agree.
func TestLinearCrossEntropyIsTheUnfusedPair(t *testing.T) {
	const rows, hidden, vocab = 1100, 24, 530 // in two steps
	type results struct{ losses, lse, dhidden, dweight []float64 }
	var all []results
	for _, workers := range []int{1, 2, 3} {
		pool := parallel.New(workers)
		a := outputCase(t, rows, hidden, vocab)
		require.NoError(t, flagosRun(t, loss.LinearCrossEntropyFwd)(opregistry.NewExec(pool, 0), a))
		pool.Close()
		all = append(all, results{a.Losses.Float64s(), a.LSE.Float64s(), a.DHidden.Float64s(), a.DWeight.Float64s()})
		assert.Equal(t, all[0], all[len(all)-1], "%d workers", workers)
	}

	e := opregistry.NewExec(opregistry.Serial{}, 0)
	a := outputCase(t, rows, hidden, vocab)
	require.NoError(t, flagosRun(t, loss.LinearCrossEntropyBwd)(e, loss.LinearCrossEntropyBwdArgs{
		Hidden: a.Hidden, Weight: a.Weight, Targets: a.Targets, LSE: lseOf(t, all[0].lse), DLosses: a.DLosses, DHidden: a.DHidden, DWeight: a.DWeight,
		IgnoreIndex: a.IgnoreIndex, Accumulate: true, Saved: a.Saved,
	}))
	assert.Equal(t, all[0].dhidden, a.DHidden.Float64s(), "dhidden of linear_cross_entropy_bwd")
	assert.Equal(t, all[0].dweight, a.DWeight.Float64s(), "dweight of linear_cross_entropy_bwd")

	a = outputCase(t, rows, hidden, vocab)
	logits, err := tensor.FromSlice(make([]float32, rows*vocab), rows, vocab)
	require.NoError(t, err)
	multiply := flagosRun(t, gemm.GenericGemm)
	require.NoError(t, multiply(e, gemm.GenericGemmArgs{A: a.Weight, TransA: true, B: a.Hidden, D: logits}))
	require.NoError(t, flagosRun(t, loss.CrossEntropyFwd)(e, loss.CrossEntropyFwdArgs{
		Logits: logits, Targets: a.Targets, Losses: a.Losses, LSE: a.LSE, IgnoreIndex: a.IgnoreIndex, Saved: a.Saved,
	}))
	require.NoError(t, flagosRun(t, loss.CrossEntropyBwd)(e, loss.CrossEntropyBwdArgs{
		Logits: logits, Targets: a.Targets, LSE: a.LSE, DLosses: a.DLosses, DLogits: logits, IgnoreIndex: a.IgnoreIndex, Saved: a.Saved,
	}))
	require.NoError(t, multiply(e, gemm.GenericGemmArgs{A: a.Weight, B: logits, D: a.DHidden}))
	require.NoError(t, multiply(e, gemm.GenericGemmArgs{A: a.Hidden, B: logits, TransB: true, D: a.DWeight, Grad: true, Accumulate: true}))
	assert.InDeltaSlice(t, all[0].losses, a.Losses.Float64s(), 1e-5)
	assert.InDeltaSlice(t, all[0].lse, a.LSE.Float64s(), 1e-5)
	assert.InDeltaSlice(t, all[0].dhidden, a.DHidden.Float64s(), 1e-5)
	assert.InDeltaSlice(t, all[0].dweight, a.DWeight.Float64s(), 2e-5)
}

func lseOf(t *testing.T, values []float64) *tensor.Tensor {
	t.Helper()
	narrow := make([]float32, len(values))
	for i, v := range values {
		narrow[i] = float32(v)
	}
	x, err := tensor.FromSlice(narrow)
	require.NoError(t, err)
	return x
}
