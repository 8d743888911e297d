package flagos_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// options gives a call some of the options that flagos serves.
func (r *random) options(a *attention.FusedAttnFwdArgs) {
	d := a.Dims()
	if r.IntN(3) == 0 {
		a.WindowSize = attention.Window(r.IntN(d.SeqKV+2)-1, r.IntN(d.SeqKV+2)-1)
	}
	if !a.AttnMaskType.Causal() && r.IntN(2) == 0 {
		a.BottomRightDiagonal = opregistry.Bool(r.IntN(2) == 0)
	}
	switch a.BiasType = attention.BiasType(r.IntN(4)); a.BiasType {
	case attention.PreScaleBias, attention.PostScaleBias:
		whole := r.IntN(2) == 0
		axis := func(n int) int {
			if whole || r.IntN(2) == 0 {
				return n
			}
			return 1
		}
		a.Bias = r.stored(axis(d.Batch), axis(d.Heads), axis(d.SeqQ), axis(d.SeqKV))
	case attention.ALiBi:
		switch r.IntN(3) {
		case 0:
			a.AlibiSlopes = r.slopes(d.Heads)
		case 1:
			a.AlibiSlopes = r.slopes(d.Batch, d.Heads)
		}
	}
	if a.SoftmaxType = attention.SoftmaxType(r.IntN(3)); a.SoftmaxType == attention.LearnableSoftmax {
		a.SoftmaxOffset = r.f32(d.Heads)
	}
	if r.IntN(2) == 0 {
		a.Softcap = 0.1 + r.Float32()
	}
	if r.IntN(2) == 0 {
		a.PDropout, a.RNGSeed, a.RNGOffset = r.Float32()*0.9, r.Uint64(), r.Uint64()
	}
}

// slopes are not negative: a score that grows with the distance has a large error.
func (r *random) slopes(shape ...int) *tensor.Tensor {
	x := r.f32(shape...)
	v := x.Float64s()
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	require.NoError(r.t, x.SetFloat64s(v))
	return x
}

// forward makes a call.
func (r *random) forward(d attention.AttnDims, mask attention.MaskType) attention.FusedAttnFwdArgs {
	return attention.FusedAttnFwdArgs{
		Q: r.stored(d.Batch, d.SeqQ, d.Heads, d.DimQK), K: r.stored(d.Batch, d.SeqKV, d.Groups, d.DimQK),
		V: r.stored(d.Batch, d.SeqKV, d.Groups, d.DimV), O: r.stored(d.Batch, d.SeqQ, d.Heads, d.DimV),
		Stats: r.f32(d.Batch, d.Heads, d.SeqQ, 1), QKVFormat: attention.BSHD, AttnMaskType: mask, Saved: r.saved(),
	}
}

// backward makes the gradient of a forward call that the reference has run.
func (r *random) backward(a attention.FusedAttnFwdArgs) attention.FusedAttnBwdArgs {
	require.NoError(r.t, runOf(r.t, slowSource, attention.FusedAttnFwd)(opregistry.NewExec(nil, 0), a))
	return r.gradient(a)
}

// gradient makes the gradient of a forward call that has run.
func (r *random) gradient(a attention.FusedAttnFwdArgs) attention.FusedAttnBwdArgs {
	like := func(x *tensor.Tensor) *tensor.Tensor { return r.stored(x.Shape()...) }
	b := attention.FusedAttnBwdArgs{
		Q: a.Q, K: a.K, V: a.V, O: a.O, DO: like(a.O), Stats: a.Stats, DQ: like(a.Q), DK: like(a.K), DV: like(a.V),
		QKVFormat: a.QKVFormat, AttnMaskType: a.AttnMaskType, AttnOptions: a.AttnOptions, Saved: r.saved(),
	}
	if a.Bias != nil {
		b.DBias = like(a.Bias)
	}
	if a.SoftmaxOffset != nil {
		b.DSoftmaxOffset = r.f32(a.SoftmaxOffset.Shape()...)
	}
	return b
}

// Shapes of several blocks, with every option.
func TestAttentionOptionsOfManyBlocksEqualTheReference(t *testing.T) {
	fast, slow := runOf(t, fastSource, attention.FusedAttnFwd), runOf(t, slowSource, attention.FusedAttnFwd)
	fastBwd, slowBwd := runOf(t, fastSource, attention.FusedAttnBwd), runOf(t, slowSource, attention.FusedAttnBwd)
	pool := parallel.New(2)
	defer pool.Close()
	x := opregistry.NewExec(pool, 0)
	make := func(i int) (*random, attention.FusedAttnFwdArgs) {
		r := &random{Rand: rand.New(rand.NewPCG(uint64(i), 9)), t: t, dtype: tensor.F32, next: uint64(i) << 8}
		d := attention.AttnDims{Batch: r.between(1, 3), SeqQ: r.between(90, 200), SeqKV: r.between(200, 700), Groups: 1, DimQK: 4, DimV: 3}
		if i%5 == 0 {
			d.SeqQ, d.SeqKV = d.SeqKV, d.SeqQ
		}
		d.Heads = r.between(1, 2)
		a := r.forward(d, []attention.MaskType{attention.NoMask, attention.CausalMask, attention.CausalBottomRightMask}[r.IntN(3)])
		r.options(&a)
		return r, a
	}
	want := map[int]attention.FusedAttnFwdArgs{}
	wantBwd := map[int]attention.FusedAttnBwdArgs{}
	for i := range primustest.Cases(20, 40) {
		r, a := make(i)
		require.NoError(t, slow(x, a), "case %d", i)
		b := r.gradient(a)
		require.NoError(t, slowBwd(x, b), "case %d", i)
		want[i], wantBwd[i] = a, b
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		for i := range want {
			r, got := make(i)
			what := fmt.Sprintf("case %d: %v, %+v", i, got.AttnMaskType, got.AttnOptions)
			require.NoError(t, attention.FusedAttnFwd.Validate(got), what)
			require.NoError(t, fast(x, got), what)
			requireSame(t, attention.FusedAttnFwd, want[i], got, what)

			gotBwd := r.gradient(got)
			for _, x := range [][2]*tensor.Tensor{{got.O, want[i].O}, {got.Stats, want[i].Stats}} {
				require.NoError(t, x[0].CopyFrom(x[1]))
			}
			require.NoError(t, attention.FusedAttnBwd.Validate(gotBwd), what)
			require.NoError(t, fastBwd(x, gotBwd), what)
			requireSame(t, attention.FusedAttnBwd, wantBwd[i], gotBwd, what)
		}
	})
}

// With options, too, the results do not depend on the workers.
func TestAttentionOptionsAreTheSameForAnyNumberOfWorkers(t *testing.T) {
	fwd, bwd := runOf(t, fastSource, attention.FusedAttnFwd), runOf(t, fastSource, attention.FusedAttnBwd)
	for i := range uint64(12) {
		var first [][]float64
		for _, workers := range []int{1, 2, 3} {
			pool := parallel.New(workers)
			x := opregistry.NewExec(pool, 0)
			r := &random{Rand: rand.New(rand.NewPCG(i, 13)), t: t, dtype: tensor.F32, next: i << 8}
			a := r.forward(attention.AttnDims{Batch: 3, SeqQ: 150, SeqKV: 600, Heads: 4, Groups: 2, DimQK: 4, DimV: 4}, attention.NoMask)
			r.options(&a)
			require.NoError(t, fwd(x, a))
			b := r.gradient(a)
			require.NoError(t, bwd(x, b))
			pool.Close()
			got := [][]float64{b.O.Float64s(), b.Stats.Float64s(), b.DQ.Float64s(), b.DK.Float64s(), b.DV.Float64s()}
			if b.DBias != nil {
				got = append(got, b.DBias.Float64s())
			}
			if b.DSoftmaxOffset != nil {
				got = append(got, b.DSoftmaxOffset.Float64s())
			}
			if first == nil {
				first = got
			}
			assert.Equal(t, first, got, "%+v, %d workers", a.AttnOptions, workers)
		}
	}
}

func TestAttentionOptionsAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector pools of memory drop what they hold")
	}
	fwd, bwd := runOf(t, fastSource, attention.FusedAttnFwd), runOf(t, fastSource, attention.FusedAttnBwd)
	pool := parallel.New(2)
	defer pool.Close()
	x := opregistry.NewExec(pool, 0)
	r := &random{Rand: rand.New(rand.NewPCG(1, 17)), t: t, dtype: tensor.BF16}
	for _, bias := range []attention.BiasType{attention.PostScaleBias, attention.ALiBi} {
		a := r.forward(attention.AttnDims{Batch: 2, SeqQ: 40, SeqKV: 300, Heads: 2, Groups: 2, DimQK: 8, DimV: 8}, attention.CausalBottomRightMask)
		a.WindowSize, a.BiasType, a.PDropout = attention.Window(70, 0), bias, 0.1
		a.SoftmaxType, a.SoftmaxOffset = attention.LearnableSoftmax, r.f32(2)
		if bias != attention.ALiBi {
			a.Bias = r.stored(1, 2, 40, 300)
		}
		b := r.backward(a)
		assert.Zero(t, testing.AllocsPerRun(20, func() { _ = fwd(x, a) }), "forward, %v", bias)
		assert.Zero(t, testing.AllocsPerRun(20, func() { _ = bwd(x, b) }), "backward, %v", bias)
	}
}

// A softmax whose first block of keys has no finite score continues with the next one.
func TestAttentionWithoutAFiniteScoreAtFirst(t *testing.T) {
	fwd := runOf(t, fastSource, attention.FusedAttnFwd)
	slow := runOf(t, slowSource, attention.FusedAttnFwd)
	x := opregistry.NewExec(nil, 0)
	kerneltest.EachFeature(t, func(t *testing.T) {
		make := func() attention.FusedAttnFwdArgs {
			r := &random{Rand: rand.New(rand.NewPCG(1, 19)), t: t, dtype: tensor.F32}
			a := r.forward(attention.AttnDims{Batch: 1, SeqQ: 3, SeqKV: 700, Heads: 1, Groups: 1, DimQK: 4, DimV: 4}, attention.NoMask)
			a.BiasType, a.Bias = attention.PostScaleBias, r.f32(1, 1, 1, 700)
			for key := range 600 {
				a.Bias.Set(math.Inf(-1), 0, 0, 0, key)
			}
			return a
		}
		want, got := make(), make()
		require.NoError(t, slow(x, want))
		require.NoError(t, fwd(x, got))
		requireSame(t, attention.FusedAttnFwd, want, got, "")
	})
}
