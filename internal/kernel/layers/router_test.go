package layers_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/layers"
)

var (
	nan      = float32(math.NaN())
	infinity = float32(math.Inf(1))
)

// scores makes numbers of which some are equal, infinite or NaN.
func scores(r *rand.Rand, n int) []float32 {
	odd := []float32{nan, infinity, -infinity, 0, float32(math.Copysign(0, -1)), 1e-40}
	x := make([]float32, n)
	for i := range x {
		if x[i] = float32(r.IntN(40)-20) / 8; r.IntN(8) == 0 {
			x[i] = odd[r.IntN(len(odd))]
		}
	}
	return x
}

func TestLargestSortsTheScoresOfTokens(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, experts := range []int{0, 1, 2, 7, 64, 100} {
			for k := 1; k <= layers.MaxTopk; k++ {
				ranks := layers.Ranks(k)
				require.GreaterOrEqual(t, ranks, k)
				x, top := scores(r, experts*layers.Tokens), make([]float32, ranks*layers.Tokens)
				layers.Largest(top, x)
				for token := range layers.Tokens {
					want := slices.Repeat([]float32{-infinity}, ranks)
					for e := range experts {
						v := x[e*layers.Tokens+token]
						if v != v {
							v = infinity
						}
						want = append(want, v)
					}
					slices.Sort(want)
					slices.Reverse(want)
					for rank := range ranks {
						require.Equal(t, want[rank], top[rank*layers.Tokens+token]+0, "rank %d of %d experts, token %d", rank, experts, token)
					}
				}
			}
		}
	})
}

func TestChooseAndSelect(t *testing.T) {
	const guard = 7
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for n := range 68 {
			x := scores(r, n)
			for _, least := range []float32{0, 0.25, infinity, -infinity, nan} {
				chosen, kept := slices.Repeat([]byte{guard}, n+1), slices.Repeat([]float32{guard}, n+1)
				count, want := layers.Choose(chosen, kept, x, least), 0
				selected := slices.Repeat([]float32{guard}, n+1)
				layers.Select(selected, x, chosen, 3)
				for i, v := range x {
					if v >= least {
						want++
						require.Equal(t, []any{byte(1), v, v}, []any{chosen[i], kept[i], selected[i]})
					} else {
						require.Equal(t, []any{byte(0), -infinity, float32(3)}, []any{chosen[i], kept[i], selected[i]})
					}
				}
				require.Equal(t, want, count, "%d scores not below %v", n, least)
				require.Equal(t, []any{byte(guard), float32(guard), float32(guard)}, []any{chosen[n], kept[n], selected[n]})
			}
		}
	})
}

// gradients computes both gradients of a row in float64.
func gradients(s, g []float32, chosen []byte, scale float64, other bool) (softmax, sigmoid []float64) {
	sum, product := layers.ScoreEpsilon, 0.0
	taken := func(i int) bool { return chosen == nil || chosen[i] != 0 }
	for i := range s {
		if taken(i) {
			sum += float64(s[i])
			product += scale * float64(s[i]) * float64(g[i])
		}
	}
	softmax, sigmoid = make([]float64, len(s)), make([]float64, len(s))
	for i := range s {
		v, d := float64(s[i]), scale*float64(g[i])
		switch {
		case taken(i) && other:
			softmax[i], sigmoid[i] = v*(d-product), v*(1-v)*d
		case taken(i):
			softmax[i], sigmoid[i] = v*(d-product), v*(1-v)*(d/sum-product/(sum*sum))
		case other:
			softmax[i] = -v * product
		}
	}
	return softmax, sigmoid
}

func TestGradients(t *testing.T) {
	const count, guard = 3, 7
	kerneltest.EachFeature(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		for n := range 68 {
			for kind := range 6 {
				other, inPlace := kind%2 == 0, kind < 3
				r := layers.RouterRows{Count: count, Cols: n, DX: n + 1, Saved: n + 2, Grad: n + 3, Chosen: n + 4}
				s, g := make([]float32, count*r.Saved), make([]float32, count*r.Grad)
				var chosen []byte
				if kind%3 != 0 {
					chosen = make([]byte, count*r.Chosen)
				}
				for i := range count {
					for j := range n {
						s[i*r.Saved+j], g[i*r.Grad+j] = rng.Float32(), rng.Float32()*2-1
						if chosen == nil {
							continue
						}
						if chosen[i*r.Chosen+j] = byte(rng.IntN(2)); chosen[i*r.Chosen+j] == 0 && !other {
							s[i*r.Saved+j] = -infinity // as the forward op leaves it
						}
					}
				}
				run := func(f func(r layers.RouterRows, dx, s, g []float32, chosen []byte, scale float32, other bool), want func(softmax, sigmoid []float64) []float64) {
					r, g, dx := r, slices.Clone(g), slices.Repeat([]float32{guard}, count*r.DX)
					original := slices.Clone(g)
					if inPlace {
						r.DX, dx = r.Grad, g
					}
					f(r, dx, s, g, chosen, 1.5, other)
					for i := range count {
						c := chosen
						if c != nil {
							c = c[i*r.Chosen:]
						}
						w := want(gradients(s[i*r.Saved:][:n], original[i*r.Grad:], c, 1.5, other))
						for j := range n {
							require.InDelta(t, w[j], dx[i*r.DX+j], 2e-6*max(1, math.Abs(w[j])/4), "row %d, column %d of %d, kind %d", i, j, n, kind)
						}
						if !inPlace {
							require.EqualValues(t, guard, dx[i*r.DX+n], "after row %d of %d", i, n)
						}
					}
				}
				run(layers.SoftmaxGradient, func(softmax, _ []float64) []float64 { return softmax })
				run(layers.SigmoidGradient, func(_, sigmoid []float64) []float64 { return sigmoid })
			}
		}
	})
	r := layers.RouterRows{Count: 2, Cols: 4, DX: 4, Saved: 4, Grad: 4, Chosen: 4}
	eight := make([]float32, 8)
	assert.Panics(t, func() { layers.SoftmaxGradient(r, make([]float32, 7), eight, eight, nil, 1, false) })
	assert.Panics(t, func() { layers.SigmoidGradient(r, eight, eight, eight, make([]byte, 7), 1, false) })
}
