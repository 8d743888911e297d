package layers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/stretchr/testify/assert"
)

func ropeForms() []kerneltest.Form {
	return []kerneltest.Form{
		{
			Name: "rotate_halves", Slices: 4, Results: 2, Unit: 2,
			Call: func(s [][]float32) float32 { rotateTwoHeads(s); return 0 },
			Formula: func(s [][]float64) float64 {
				h := len(s[0]) / 2
				for i := range h {
					a, b, c, d := s[0][i], s[1][i], s[2][i], s[3][i]
					s[0][i], s[1][i] = a*c-b*d, b*c+a*d
					a, b = s[0][i+h], s[1][i+h]
					s[0][i+h], s[1][i+h] = a*c-b*d, b*c+a*d
				}
				return 0
			},
		},
		{
			Name: "rotate_pairs", Slices: 4, Results: 1, Unit: 2,
			Call: func(s [][]float32) float32 { RotatePairs(s[0], s[1], s[2], s[3]); return 0 },
			Formula: func(s [][]float64) float64 {
				for i := 0; i < len(s[0]); i += 2 {
					s[0][i] = s[1][i]*s[2][i] + s[1][i+1]*s[3][i]
					s[0][i+1] = s[1][i+1]*s[2][i+1] + s[1][i]*s[3][i+1]
				}
				return 0
			},
		},
		{
			Name: "sin_cos", Slices: 3, Results: 2, Unit: 1,
			Call: func(s [][]float32) float32 { SinCos(s[0], s[1], s[2]); return 0 },
			Formula: func(s [][]float64) float64 {
				for i := range s[0] {
					s[0][i], s[1][i] = math.Sincos(s[2][i])
				}
				return 0
			},
		},
	}
}

// rotateTwoHeads turns two heads in place by the first half of s[2] and s[3].
func rotateTwoHeads(s [][]float32) {
	h := len(s[0]) / 2
	c, d := s[2][:h], s[3][:h]
	RotateHalves(Turns{Steps: 1, Groups: 1, Heads: 2, Columns: h}, s[0], s[1], Pitch{Head: h}, s[0], s[1], Pitch{Head: h}, c, c, d, d)
}

func TestSinCosIsAccurateForEveryAngle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var theta []float32
	for _, reach := range []float64{1e-30, 1e-3, 1, 100, 1e5, 1 << 20, 1e8, 1e30} {
		for range 1000 {
			theta = append(theta, float32(rng.NormFloat64()*reach))
		}
	}
	for k := range 4000 {
		theta = append(theta, float32(float64(k)*math.Pi/4))
	}
	for _, part := range [][]float32{theta, theta[:5000], theta[8000:]} {
		sin, cos := make([]float32, len(part)), make([]float32, len(part))
		SinCos(sin, cos, part)
		for i, a := range part {
			s, c := math.Sincos(float64(a))
			if math.Abs(float64(sin[i])-s) > 1.2e-7*math.Abs(s)+1e-30 || math.Abs(float64(cos[i])-c) > 1.2e-7*math.Abs(c)+1e-30 {
				t.Fatalf("angle %g: got %g, %g, want %g, %g", a, sin[i], cos[i], s, c)
			}
		}
	}
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), 0, 0, 0, 0, 0, 0}
	SinCos(odd, make([]float32, 8), odd)
	assert.True(t, math.IsNaN(float64(odd[0])) && math.IsNaN(float64(odd[1])) && odd[2] == 0)
}

func TestRotateHalvesKeepsTheGaps(t *testing.T) {
	y, x := Pitch{Step: 500, Group: 150, Head: 71}, Pitch{Step: 400, Group: 71, Head: 142}
	for _, columns := range []int{1, 11, 16, 32, 40, 70} {
		turns := Turns{Steps: 2, Groups: 2, Heads: 2, Columns: columns, Angles: 75}
		kerneltest.EachFeature(t, func(t *testing.T) {
			s := kerneltest.Fill(rand.New(rand.NewPCG(1, 1)), 8, y.end(turns)+kerneltest.Surround)
			want0, want1, copied := slices.Clone(s[0]), slices.Clone(s[1]), slices.Clone(s[0])
			wantCopy := slices.Clone(copied)
			for step := range turns.Steps {
				for j := range turns.Groups {
					for k := range turns.Heads {
						for i := range columns {
							to, from, a := y.at(step, j, k)+i, x.at(step, j, k)+i, step*turns.Angles+i
							want0[to] = s[2][from]*s[4][a] - s[3][from]*s[6][a]
							want1[to] = s[3][from]*s[5][a] + s[2][from]*s[7][a]
							wantCopy[to] = s[2][from]
						}
					}
				}
			}
			RotateHalves(turns, s[0], s[1], y, s[2], s[3], x, s[4], s[5], s[6], s[7])
			assert.InDeltaSlice(t, want0, s[0], 1e-6)
			assert.InDeltaSlice(t, want1, s[1], 1e-6)
			CopyHeads(turns, copied, y, s[2], x)
			assert.Equal(t, wantCopy, copied)
		})
	}
}
