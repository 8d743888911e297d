package vector_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/vector"
)

func forms() []kerneltest.Form {
	return []kerneltest.Form{
		{
			Name: "mul_scale", Slices: 3, Results: 1, Unit: 1,
			Call: func(s [][]float32) float32 { vector.MulScale(s[0], s[1], s[2], 1.5); return 0 },
			Formula: func(s [][]float64) float64 {
				for i := range s[0] {
					s[0][i] = s[1][i] * 1.5 * s[2][i]
				}
				return 0
			},
		},
		{
			Name: "scale_finite", Slices: 2, Results: 1, Unit: 1,
			Call: func(s [][]float32) float32 { vector.ScaleFinite(s[0], s[1], -2.5); return 0 },
			Formula: func(s [][]float64) float64 {
				for i := range s[0] {
					s[0][i] = s[1][i] * -2.5
				}
				return 0
			},
		},
		{
			Name: "sum_squares", Slices: 1, Results: 0, Unit: 1,
			Call: func(s [][]float32) float32 { return float32(vector.SumSquares(s[0])) },
			Formula: func(s [][]float64) float64 {
				sum := 0.
				for _, v := range s[0] {
					sum += v * v
				}
				return sum
			},
		},
	}
}

func TestFormsEqualTheirFormula(t *testing.T) { kerneltest.CheckForms(t, forms()) }

func BenchmarkForms(b *testing.B) { kerneltest.BenchForms(b, forms()) }

func TestScaleFiniteFindsWhatIsNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at := range 21 {
			x := make([]float32, 21)
			dst := make([]float32, 21)
			x[0], x[20] = math.MaxFloat32, -math.SmallestNonzeroFloat32
			assert.True(t, vector.ScaleFinite(dst, x, 4), "only finite elements")
			x[at] = float32(bad)
			assert.False(t, vector.ScaleFinite(dst, x, 4), "%v at %d", bad, at)
		}
	}
}
