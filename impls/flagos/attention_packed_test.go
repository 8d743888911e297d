package flagos_test

import (
	"fmt"
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

// sequences makes a call with sequences of lengths of their own: packed tokens, which may have gaps
// between the sequences, or padded rows.
func (r *random) sequences(format attention.QKVFormat, batch, maxQ, maxKV int) attention.FusedAttnFwdArgs {
	lengths := func(most int) (ends, starts *tensor.Tensor, all int) {
		var e, s = []float64{0}, []float64{0}
		for range batch {
			n := r.between(0, most)
			if r.IntN(3) == 0 {
				n = r.between(0, min(most, 3)) // as in generation
			}
			e = append(e, e[len(e)-1]+float64(n))
			s = append(s, s[len(s)-1]+float64(n+r.between(0, 2)))
		}
		return r.lengths(e), r.lengths(s), int(s[batch])
	}
	d := attention.AttnDims{Batch: batch, SeqQ: maxQ, SeqKV: maxKV, Groups: r.between(1, 2), DimQK: 4, DimV: 3}
	d.Heads = d.Groups * r.between(1, 2)
	masks := []attention.MaskType{attention.PaddingMask, attention.PaddingCausalMask, attention.PaddingCausalBottomRightMask}
	endsQ, startsQ, allQ := lengths(maxQ)
	endsKV, startsKV, allKV := lengths(maxKV)
	a := r.forward(d, masks[r.IntN(len(masks))])
	a.CuSeqlensQ, a.CuSeqlensKV = endsQ, endsKV
	if format == attention.THD {
		a.QKVFormat, a.CuSeqlensQPadded, a.CuSeqlensKVPadded = format, startsQ, startsKV
		a.Q, a.O = r.stored(allQ, d.Heads, d.DimQK), r.stored(allQ, d.Heads, d.DimV)
		a.K, a.V = r.stored(allKV, d.Groups, d.DimQK), r.stored(allKV, d.Groups, d.DimV)
		a.Stats = r.f32(allQ, d.Heads, 1)
	}
	if r.IntN(3) == 0 {
		a.WindowSize = attention.Window(r.IntN(maxKV), r.IntN(3))
	}
	if r.IntN(3) == 0 {
		a.BiasType = attention.ALiBi
	}
	if r.IntN(3) == 0 {
		a.SoftmaxType = attention.OffByOneSoftmax
	}
	if r.IntN(3) == 0 {
		a.PDropout, a.RNGSeed, a.RNGOffset = 0.4, r.Uint64(), r.Uint64()
	}
	return a
}

func (r *random) lengths(values []float64) *tensor.Tensor {
	x, err := tensor.FromSlice(make([]int32, len(values)))
	require.NoError(r.t, err)
	return set(r.t, x, values...)
}

func TestAttentionOfSequencesEqualsTheReference(t *testing.T) {
	fast, slow := runOf(t, fastSource, attention.FusedAttnFwd), runOf(t, slowSource, attention.FusedAttnFwd)
	fastBwd, slowBwd := runOf(t, fastSource, attention.FusedAttnBwd), runOf(t, slowSource, attention.FusedAttnBwd)
	pool := parallel.New(2)
	defer pool.Close()
	x := opregistry.NewExec(pool, 0)
	kerneltest.EachFeature(t, func(t *testing.T) {
		for i := range primustest.Cases(15, 30) {
			make := func() (*random, attention.FusedAttnFwdArgs) {
				r := &random{Rand: rand.New(rand.NewPCG(uint64(i), 21)), t: t, dtype: []tensor.DType{tensor.F32, tensor.F32, tensor.BF16}[i%3], next: uint64(i) << 8}
				format := []attention.QKVFormat{attention.THD, attention.BSHD}[r.IntN(2)]
				return r, r.sequences(format, r.between(1, 4), r.between(1, 150), r.between(1, 600))
			}
			_, want := make()
			r, got := make()
			what := fmt.Sprintf("case %d: %v, %v, %+v", i, got.QKVFormat, got.AttnMaskType, got.AttnOptions)
			require.NoError(t, attention.FusedAttnFwd.Validate(got), what)
			require.NoError(t, slow(x, want), what)
			require.NoError(t, fast(x, got), what)
			requireSame(t, attention.FusedAttnFwd, want, got, what)

			again := *r
			again.Rand = rand.New(rand.NewPCG(uint64(i), 11))
			wantBwd, gotBwd := again.backward(want), again.backward(got)
			require.NoError(t, gotBwd.DO.CopyFrom(wantBwd.DO))
			require.NoError(t, slowBwd(x, wantBwd), what)
			require.NoError(t, fastBwd(x, gotBwd), what)
			requireSame(t, attention.FusedAttnBwd, wantBwd, gotBwd, what)
		}
	})
}

// A step of generation allocates nothing: one query of each sequence, over the keys of a cache.
func TestDecodingAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector pools of memory drop what they hold")
	}
	attend, store := runOf(t, fastSource, attention.FusedAttnFwd), runOf(t, fastSource, attention.CopyToKVCache)
	pool := parallel.New(2)
	defer pool.Close()
	x := opregistry.NewExec(pool, 0)
	for _, dtype := range []tensor.DType{tensor.F32, tensor.BF16} {
		r := &random{Rand: rand.New(rand.NewPCG(1, 3)), t: t, dtype: dtype}
		fresh, cached, slots := r.lengths([]float64{0, 1, 1, 70}), r.lengths([]float64{0, 20, 50, 120}), r.lengths([]float64{0, 1, 2})
		starts := r.lengths([]float64{0, 100, 200, 300})
		table, err := slots.Reshape(3, 1)
		require.NoError(t, err)
		k, v := r.stored(3, 100, 2, 8), r.stored(3, 100, 2, 8)
		packed := func(t *tensor.Tensor) *tensor.Tensor {
			y, err := t.Reshape(300, 2, 8)
			require.NoError(r.t, err)
			return y
		}
		newK, newV := r.stored(70, 2, 8), r.stored(70, 2, 8)
		a := attention.FusedAttnFwdArgs{
			Q: r.stored(70, 4, 8), K: packed(k), V: packed(v), O: r.stored(70, 4, 8), Stats: r.f32(70, 4, 1), Saved: r.saved(),
			QKVFormat: attention.THD, AttnMaskType: attention.PaddingCausalBottomRightMask,
		}
		a.CuSeqlensQ, a.CuSeqlensQPadded, a.CuSeqlensKV, a.CuSeqlensKVPadded = fresh, fresh, cached, starts
		copyArgs := attention.CopyToKVCacheArgs{
			NewK: newK, NewV: newV, KCache: k, VCache: v, PageTable: table, CuNewLens: fresh, CuCachedLens: cached, QKVFormat: attention.THD, IsNonPaged: true,
		}
		require.NoError(t, attention.FusedAttnFwd.Validate(a))
		require.NoError(t, attention.CopyToKVCache.Validate(copyArgs))
		assert.Zero(t, testing.AllocsPerRun(30, func() {
			_ = store(x, copyArgs)
			_ = attend(x, a)
		}), dtype)
	}
}
