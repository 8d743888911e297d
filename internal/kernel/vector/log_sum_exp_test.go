package vector_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/stretchr/testify/require"
)

func TestLogSumExp(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		kerneltest.EachShape(func(n, offset int) {
			rows, gap := 1+r.IntN(20), r.IntN(3)
			x := kerneltest.NewOperand(r, offset, max(rows*(n+gap)-gap, 0))
			scale, shift := float32(r.ExpFloat64()*5), float32(r.NormFloat64()*50)
			for i := range x.Data {
				x.Data[i] = x.Data[i]*scale + shift
			}
			dst := make([]float64, rows+1)
			vector.LogSumExp(dst[:rows], x.Data, n, n+gap)
			for row, got := range dst[:rows] {
				requireLogSumExp(t, x.Data[row*(n+gap):][:n], got)
			}
			require.Zero(t, dst[rows])
		})
	})
}

// requireLogSumExp checks one row against sums in float64.
func requireLogSumExp(t *testing.T, x []float32, got float64) {
	t.Helper()
	most := math.Inf(-1)
	for _, v := range x {
		most = max(most, float64(v))
	}
	if len(x) == 0 {
		require.Equal(t, most, got)
		return
	}
	sum, off := 0., 0.
	for _, v := range x {
		below := most - float64(v)
		sum += math.Exp(-below)
		off += math.Exp(-below) * 2e-7 * (1 + below/3)
	}
	require.InDelta(t, most+math.Log(sum), got, off/sum+4e-7, "%d elements", len(x))
}

func TestLogSumExpOfLongRows(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, n := range []int{4096, 4097, 8192, 70001, 140000} {
			x := kerneltest.NewOperand(r, 3, 2*n).Data
			for i := range x {
				x[i] *= 3
				x[i] += float32(40 * i / n)
			}
			x[n/3], x[n+n/2] = 17, 90
			got := make([]float64, 2)
			vector.LogSumExp(got, x, n, n)
			requireLogSumExp(t, x[:n], got[0])
			requireLogSumExp(t, x[n:], got[1])

			for _, at := range []int{0, n / 2, n - 1} {
				kept := x[at]
				x[at] = inf
				vector.LogSumExp(got[:1], x, n, n)
				require.Equal(t, math.Inf(1), got[0])
				x[at] = nan
				vector.LogSumExp(got[:1], x, n, n)
				require.True(t, math.IsNaN(got[0]))
				x[at] = kept
			}
			for i := range x[:n] {
				x[i] = -inf
			}
			vector.LogSumExp(got[:1], x, n, n)
			require.Equal(t, math.Inf(-1), got[0])
			x[n-1] = -3
			vector.LogSumExp(got[:1], x, n, n)
			require.InDelta(t, -3, got[0], 2e-7)
		}
	})
}

func TestLogSumExpOfSpecialValues(t *testing.T) {
	inf, nan, largest := float32(math.Inf(1)), float32(math.NaN()), float32(math.MaxFloat32)
	ln2 := float32(math.Ln2)
	tests := []struct {
		give []float32
		want float64
	}{
		{[]float32{3.7}, float64(float32(3.7))},
		{[]float32{ln2, ln2}, float64(ln2) + math.Ln2},
		{[]float32{-123.456, -123.456}, float64(float32(-123.456)) + math.Ln2},
		{[]float32{-inf, 5, -inf}, 5},
		{[]float32{-inf, -inf}, math.Inf(-1)},
		{[]float32{inf, 2, inf}, math.Inf(1)},
		{[]float32{-inf, inf}, math.Inf(1)},
		{[]float32{1, nan}, math.NaN()},
		{[]float32{inf, nan, -inf}, math.NaN()},
		{[]float32{largest, -largest, largest}, float64(largest)},
		{[]float32{-largest, -largest}, -float64(largest)},
		{[]float32{1e10, -1e10, 1e10 - 1024}, float64(float32(1e10))},
		{[]float32{300, -300, 299}, 300.31326168751822},
		{[]float32{-300, 300, 299}, 300.31326168751822},
		{[]float32{-70000, -70001}, -70000 + 0.31326168751822},
		{[]float32{0, -90, -95, -100, -104}, 0},
		{[]float32{100, -30}, 100},
		{[]float32{-30, 100}, 100},
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		for _, tt := range tests {
			for lead := range 70 {
				x := make([]float32, lead, lead+len(tt.give))
				for i := range x {
					x[i] = -inf
				}
				x = append(x, tt.give...)
				rows := append(append(make([]float32, len(x)), x...), make([]float32, len(x))...)
				got := make([]float64, 3)
				vector.LogSumExp(got, rows, len(x), len(x))
				require.InDelta(t, math.Log(float64(len(x))), got[0], 3e-7)
				require.Equal(t, got[0], got[2])
				if math.IsNaN(tt.want) {
					require.True(t, math.IsNaN(got[1]), "%v gives %v", tt.give, got[1])
				} else {
					require.InDelta(t, tt.want, got[1], 2e-7, "%v", tt.give)
				}
			}
		}
	})
}

func TestLogSumExpOfOneElement(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		for x := float32(-200); x < 200; x += 0.173 {
			got := make([]float64, 1)
			vector.LogSumExp(got, []float32{x}, 1, 1)
			require.InDelta(t, x, got[0], 2e-7)
		}
	})
}
