package fused

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/cpufeat"
)

var testStep = AdamStep{
	Beta1: 0.9, Rest1: 0.1, Beta2: 0.99, Rest2: 0.01,
	RootScale: 3, Epsilon: 1e-8, Rate: 0.01, Decay: 0.001,
}

// form is a function of the package that takes only slices, the first of which are results. Sizes
// are rounded down to a multiple of unit.
type form struct {
	name    string
	slices  int
	results int
	unit    int
	call    func(s [][]float32) float32
	formula func(s [][]float64) float64 // the same in float64
}

func forms() []form {
	l2 := testStep
	l2.Decay, l2.L2 = 0, 0.1
	return []form{
		{"mul_scale", 3, 1, 1,
			func(s [][]float32) float32 { MulScale(s[0], s[1], s[2], 1.5); return 0 },
			func(s [][]float64) float64 {
				for i := range s[0] {
					s[0][i] = s[1][i] * 1.5 * s[2][i]
				}
				return 0
			}},
		{"scale", 2, 1, 1,
			func(s [][]float32) float32 { Scale(s[0], s[1], -2.5); return 0 },
			func(s [][]float64) float64 {
				for i := range s[0] {
					s[0][i] = s[1][i] * -2.5
				}
				return 0
			}},
		{"sum_squares", 1, 0, 1,
			func(s [][]float32) float32 { return float32(SumSquares(s[0])) },
			func(s [][]float64) float64 {
				sum := 0.
				for _, v := range s[0] {
					sum += v * v
				}
				return sum
			}},
		{"rotate_halves", 4, 2, 2,
			func(s [][]float32) float32 { rotateTwoHeads(s); return 0 },
			func(s [][]float64) float64 {
				h := len(s[0]) / 2
				for i := range h {
					a, b, c, d := s[0][i], s[1][i], s[2][i], s[3][i]
					s[0][i], s[1][i] = a*c-b*d, b*c+a*d
					a, b = s[0][i+h], s[1][i+h]
					s[0][i+h], s[1][i+h] = a*c-b*d, b*c+a*d
				}
				return 0
			}},
		{"rotate_pairs", 4, 1, 2,
			func(s [][]float32) float32 { RotatePairs(s[0], s[1], s[2], s[3]); return 0 },
			func(s [][]float64) float64 {
				for i := 0; i < len(s[0]); i += 2 {
					s[0][i] = s[1][i]*s[2][i] + s[1][i+1]*s[3][i]
					s[0][i+1] = s[1][i+1]*s[2][i+1] + s[1][i]*s[3][i+1]
				}
				return 0
			}},
		{"sin_cos", 3, 2, 1,
			func(s [][]float32) float32 { SinCos(s[0], s[1], s[2]); return 0 },
			func(s [][]float64) float64 {
				for i := range s[0] {
					s[0][i], s[1][i] = math.Sincos(s[2][i])
				}
				return 0
			}},
		{"adam", 4, 3, 1,
			func(s [][]float32) float32 {
				Adam(s[0], s[1], s[2], s[3], &testStep)
				return 0
			},
			func(s [][]float64) float64 { adam64(s, &testStep); return 0 }},
		{"adam_l2", 4, 3, 1,
			func(s [][]float32) float32 {
				Adam(s[0], s[1], s[2], s[3], &l2)
				return 0
			},
			func(s [][]float64) float64 { adam64(s, &l2); return 0 }},
	}
}

func adam64(s [][]float64, step *AdamStep) {
	for i := range s[0] {
		p, g := s[0][i], s[3][i]
		g += float64(step.L2) * p
		m := float64(step.Beta1)*s[1][i] + float64(step.Rest1)*g
		v := float64(step.Beta2)*s[2][i] + float64(step.Rest2)*g*g
		s[0][i] = p - float64(step.Decay)*p - float64(step.Rate)*m/(math.Sqrt(v)*float64(step.RootScale)+float64(step.Epsilon))
		s[1][i], s[2][i] = m, v
	}
}

// rotateTwoHeads turns two heads in place by the first half of s[2] and s[3].
func rotateTwoHeads(s [][]float32) {
	h := len(s[0]) / 2
	c, d := s[2][:h], s[3][:h]
	RotateHalves(Turns{Steps: 1, Heads: 2, Columns: h}, s[0], s[1], Pitch{Head: h}, s[0], s[1], Pitch{Head: h}, c, c, d, d)
}

const guard = 16

// fill draws values that every form accepts: those of v of Adam are positive.
func fill(rng *rand.Rand, slices, n int) [][]float32 {
	out := make([][]float32, slices)
	for k := range out {
		out[k] = make([]float32, n)
		for i := range out[k] {
			out[k][i] = float32(rng.NormFloat64())
			if k == 2 {
				out[k][i] = max(-out[k][i], out[k][i])
			}
		}
	}
	return out
}

func TestFormsEqualTheirFormulaAtEveryLengthAndOffset(t *testing.T) {
	for _, simd := range []bool{true, false} {
		for _, f := range forms() {
			t.Run(fmt.Sprintf("%s/simd=%v", f.name, simd), func(t *testing.T) {
				if !simd {
					defer cpufeat.Disable(cpufeat.AVX2)()
				}
				rng := rand.New(rand.NewPCG(1, 2))
				for n := 0; n <= 67; n += f.unit {
					for offset := range guard {
						checkForm(t, rng, f, n, offset)
					}
				}
				checkForm(t, rng, f, 1030, 1)
			})
		}
	}
}

func checkForm(t *testing.T, rng *rand.Rand, f form, n, offset int) {
	t.Helper()
	memory := fill(rng, f.slices, n+2*guard)
	before, views, wide := make([][]float32, f.slices), make([][]float32, f.slices), make([][]float64, f.slices)
	for k, mem := range memory {
		before[k] = append([]float32(nil), mem...)
		views[k] = mem[offset : offset+n]
		for _, v := range views[k] {
			wide[k] = append(wide[k], float64(v))
		}
	}
	got := float64(f.call(views))
	want := f.formula(wide)
	assert.InDelta(t, want, got, 1e-5+2e-7*math.Abs(want), "%d elements at %d", n, offset)
	for k := range memory {
		for i := range memory[k] {
			inside := k < f.results && i >= offset && i < offset+n
			switch {
			case !inside && memory[k][i] != before[k][i]:
				t.Fatalf("%d elements at %d: element %d of slice %d was written to", n, offset, i-offset, k)
			case inside && !near(wide[k][i-offset], memory[k][i]):
				t.Fatalf("%d elements at %d: slice %d[%d] = %g, want %g", n, offset, k, i-offset, memory[k][i], wide[k][i-offset])
			}
		}
	}
}

func near(want float64, got float32) bool {
	return math.Abs(want-float64(got)) <= 1e-6*(1+math.Abs(want))
}

func TestScaleFindsWhatIsNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at := range 21 {
			x := make([]float32, 21)
			dst := make([]float32, 21)
			x[0], x[20] = math.MaxFloat32, -math.SmallestNonzeroFloat32
			assert.True(t, Scale(dst, x, 4), "only finite elements")
			x[at] = float32(bad)
			assert.False(t, Scale(dst, x, 4), "%v at %d", bad, at)
		}
	}
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

func TestAdamWithoutL2KeepsMomentsFiniteWhereAParameterIsNot(t *testing.T) {
	p, m, v, g := make([]float32, 9), make([]float32, 9), make([]float32, 9), make([]float32, 9)
	for i := range p {
		p[i] = float32(math.Inf(1))
	}
	Adam(p, m, v, g, &testStep)
	for i := range p {
		assert.Zero(t, m[i])
		assert.Zero(t, v[i])
	}
}

func BenchmarkForms(b *testing.B) {
	for _, f := range forms() {
		b.Run(f.name, func(b *testing.B) {
			s := fill(rand.New(rand.NewPCG(1, 1)), f.slices, 2048)
			b.SetBytes(int64(f.slices+f.results) * 2048 * 4)
			for b.Loop() {
				f.call(s)
			}
		})
	}
}

func TestRotateHalvesKeepsTheGaps(t *testing.T) {
	turns := Turns{Steps: 2, Heads: 3, Columns: 11, Angles: 15}
	y, x := Pitch{Step: 50, Head: 14}, Pitch{Step: 37, Head: 12}
	for _, simd := range []bool{true, false} {
		t.Run(fmt.Sprintf("simd=%v", simd), func(t *testing.T) {
			if !simd {
				defer cpufeat.Disable(cpufeat.AVX2)()
			}
			s := fill(rand.New(rand.NewPCG(1, 1)), 8, y.end(turns)+guard)
			want0, want1 := append([]float32(nil), s[0]...), append([]float32(nil), s[1]...)
			for step := range turns.Steps {
				for k := range turns.Heads {
					for i := range turns.Columns {
						to, from, a := step*y.Step+k*y.Head+i, step*x.Step+k*x.Head+i, step*turns.Angles+i
						want0[to] = s[2][from]*s[4][a] - s[3][from]*s[6][a]
						want1[to] = s[3][from]*s[5][a] + s[2][from]*s[7][a]
					}
				}
			}
			RotateHalves(turns, s[0], s[1], y, s[2], s[3], x, s[4], s[5], s[6], s[7])
			assert.InDeltaSlice(t, want0, s[0], 1e-6)
			assert.InDeltaSlice(t, want1, s[1], 1e-6)
		})
	}
}
