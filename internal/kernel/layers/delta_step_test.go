package layers_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/layers"
)

func TestStepFollowsTheDeltaRule(t *testing.T) {
	const guard = 7
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		numbers := func(n int) []float32 {
			x := make([]float32, n+1)
			for i := range x {
				x[i] = r.Float32()*2 - 1
			}
			x[n] = guard
			return x
		}
		for cols := 1; cols <= layers.DeltaColumns+3; cols++ {
			for _, rows := range []int{1, 2, 5, 33} {
				state, v, o := numbers(rows*cols), numbers(cols), numbers(cols)
				p := layers.DeltaPosition{K: numbers(rows)[:rows], Q: numbers(rows)[:rows], Decay: 0.75, Beta: 0.5}
				for i, k := range p.K {
					p.Product += k * p.Q[i]
				}
				want, read := make([]float64, rows*cols), make([]float64, cols)
				for j := range cols {
					d := float64(v[j])
					for i, k := range p.K {
						d -= 0.75 * float64(state[i*cols+j]) * float64(k)
					}
					for i, k := range p.K {
						want[i*cols+j] = 0.75*float64(state[i*cols+j]) + float64(k)*0.5*d
						read[j] += want[i*cols+j] * float64(p.Q[i])
					}
				}
				layers.DeltaStep(state, &p, v[:cols], o)
				for i, w := range want {
					require.InDelta(t, w, state[i], 1e-5, "element %d of %d rows of %d", i, rows, cols)
				}
				for j, w := range read {
					require.InDelta(t, w, o[j], 1e-5, "result %d of %d rows of %d", j, rows, cols)
				}
				require.Equal(t, []float32{guard, guard}, []float32{state[rows*cols], o[cols]})
			}
		}
	})
	p := layers.DeltaPosition{K: make([]float32, 2), Q: make([]float32, 2)}
	one := make([]float32, 1)
	layers.DeltaStep(nil, &layers.DeltaPosition{}, []float32{1}, one)
	assert.Zero(t, one[0])
	assert.Panics(t, func() { layers.DeltaStep(make([]float32, 7), &p, make([]float32, 4), make([]float32, 4)) })
}
