package fp8_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/cpufeat/cpufeattest"
	"github.com/primus-fl/primus/internal/kernel/fp8"
)

func TestAmaxColumns(t *testing.T) {
	const guard = 0xa5
	special := []float32{float32(math.NaN()), float32(math.Inf(-1)), float32(math.Copysign(0, -1)), -1e-45, math.MaxFloat32}
	cpufeattest.Each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, rows := range []int{0, 1, 2, 5, 32} {
			for _, cols := range []int{0, 1, 15, 16, 63, 64, 65, 255, 256, 300, 512, 600} {
				pitch := cols + 3
				x, want, got := make([]float32, rows*pitch), make([]float32, cols), make([]float32, cols+1)
				for i := range x {
					if x[i] = float32(r.NormFloat64()); r.IntN(20) == 0 {
						x[i] = special[r.IntN(len(special))]
					}
					if c := i % pitch; c < cols && math.Abs(float64(x[i])) > float64(want[c]) {
						want[c] = float32(math.Abs(float64(x[i])))
					}
				}
				for i := range got {
					got[i] = guard
				}
				fp8.AmaxColumns(got[:cols], x, pitch, rows)
				require.Equal(t, want, got[:cols], "%d rows of %d", rows, cols)
				require.EqualValues(t, guard, got[cols])
			}
		}
	})
	require.Panics(t, func() { fp8.AmaxColumns(make([]float32, 4), make([]float32, 7), 4, 2) })
}
