package flagos_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// Tokens of several sequences, and several parts of one, are copied to the caches.
func TestCachesOfManyTokensEqualTheReference(t *testing.T) {
	pool := parallel.New(3)
	defer pool.Close()
	const heads, page = 4, 16
	lengths := []float64{0, 0, 3, 203, 260} // cumulative, of the new tokens
	cached := []float64{0, 0, 10, 260, 320} // with those that were there before
	for _, dtype := range []tensor.DType{tensor.F32, tensor.BF16} {
		for _, format := range []attention.QKVFormat{attention.SBHD, attention.BSHD, attention.THD} {
			for _, paged := range []bool{true, false} {
				r := rand.New(rand.NewPCG(1, uint64(format)))
				filled := func(d tensor.DType, shape ...int) *tensor.Tensor {
					x, err := tensor.New(cpu.New(), d, shape...)
					require.NoError(t, err)
					values := make([]float64, x.NumElements())
					for i := range values {
						values[i] = float64(r.IntN(256))
					}
					return set(t, x, values...)
				}
				numbers := func(values ...float64) *tensor.Tensor { return set(t, filled(tensor.I32, len(values)), values...) }
				batch := len(lengths) - 1
				fresh := func(d int) *tensor.Tensor {
					switch format {
					case attention.SBHD:
						return filled(dtype, 200, batch, heads, d)
					case attention.BSHD:
						return filled(dtype, batch, 200, heads, d)
					default:
						return filled(dtype, 260, heads, d)
					}
				}
				rows, size := batch, 256
				table := set(t, filled(tensor.I32, batch, 1), 0, 2, 3, 4)
				if paged {
					rows, size = 16*batch, page
					order := make([]float64, rows)
					for i, p := range r.Perm(rows) {
						order[i] = float64(p)
					}
					table = set(t, filled(tensor.I32, batch, 16), order...)
				} else {
					rows++
				}
				caches := []*tensor.Tensor{filled(dtype, rows, size, heads, 40), filled(dtype, rows, size, heads, 24)}
				a := attention.CopyToKVCacheArgs{
					NewK: fresh(40), NewV: fresh(24), KCache: caches[0], VCache: caches[1], PageTable: table,
					CuNewLens: numbers(lengths...), CuCachedLens: numbers(cached...), QKVFormat: format, IsNonPaged: !paged,
				}
				before := [][]float64{caches[0].Float64s(), caches[1].Float64s()}
				run := func(s opregistry.Source) []float64 {
					set(t, caches[0], before[0]...)
					set(t, caches[1], before[1]...)
					require.NoError(t, attention.CopyToKVCache.Validate(a))
					require.NoError(t, runOf(t, s, attention.CopyToKVCache)(opregistry.NewExec(pool, 0), a))
					return append(caches[0].Float64s(), caches[1].Float64s()...)
				}
				require.True(t, slices.Equal(run(reference.Source()), run(fastSource)), "%v, %v, paged %v", dtype, format, paged)
			}
		}
	}
}

// A state of more columns than a block has goes through more positions than it does at a time.
func TestDeltaNetOfSeveralBlocksEqualsTheReference(t *testing.T) {
	const seq, heads, dk, dv = 130, 2, 24, 150
	r := rand.New(rand.NewPCG(4, 5))
	filled := func(least, most float64, shape ...int) *tensor.Tensor {
		x, err := tensor.New(cpu.New(), tensor.F32, shape...)
		require.NoError(t, err)
		values := make([]float64, x.NumElements())
		for i := range values {
			values[i] = least + (most-least)*r.Float64()
		}
		return set(t, x, values...)
	}
	a := attention.GatedDeltaNetForwardArgs{
		Query: filled(-1, 1, 1, seq, heads, dk), Key: filled(-1, 1, 1, seq, heads, dk), Value: filled(-1, 1, 1, seq, heads, dv),
		G: filled(-1, 0, 1, seq, heads), Beta: filled(0, 1, 1, seq, heads), UseQKL2Norm: true, InitialState: filled(-1, 1, 1, heads, dk, dv),
		Output: filled(0, 0, 1, seq, heads, dv), FinalState: filled(0, 0, 1, heads, dk, dv),
	}
	run := func(s opregistry.Source) (output, state []float64) {
		require.NoError(t, runOf(t, s, attention.GatedDeltaNetForward)(opregistry.NewExec(nil, 0), a))
		return a.Output.Float64s(), a.FinalState.Float64s()
	}
	output, state := run(reference.Source())
	gotOutput, gotState := run(fastSource)
	require.InDeltaSlice(t, output, gotOutput, 1e-5)
	require.InDeltaSlice(t, state, gotState, 1e-5)
}
