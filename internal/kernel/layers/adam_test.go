package layers

import (
	"math"
	"slices"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testStep = AdamStep{
	Beta1: 0.9, Rest1: 0.1, Beta2: 0.99, Rest2: 0.01,
	RootScale: 3, Epsilon: 1e-8, Rate: 0.01, Decay: 0.001,
}

func adamForms() []kerneltest.Form {
	l2 := testStep
	l2.Decay, l2.L2 = 0, 0.1
	return []kerneltest.Form{
		{
			Name: "adam", Slices: 4, Results: 3, Unit: 1,
			Call: func(s [][]float32) float32 {
				Adam(s[0], s[1], s[2], s[3], &testStep)
				return 0
			},
			Formula: func(s [][]float64) float64 { adam64(s, &testStep); return 0 },
		},
		{
			Name: "adam_l2", Slices: 4, Results: 3, Unit: 1,
			Call: func(s [][]float32) float32 {
				Adam(s[0], s[1], s[2], s[3], &l2)
				return 0
			},
			Formula: func(s [][]float64) float64 { adam64(s, &l2); return 0 },
		},
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

func TestFormsEqualTheirFormula(t *testing.T) {
	kerneltest.CheckForms(t, slices.Concat(adamForms(), ropeForms()))
}

func BenchmarkForms(b *testing.B) { kerneltest.BenchForms(b, slices.Concat(adamForms(), ropeForms())) }

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

func TestAdamLargestReturnsTheLargestMagnitude(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		for n := range 40 {
			for at := range n {
				p, m, v, g := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
				for i := range p {
					p[i] = float32(i%5) - 2
				}
				p[at] = -8
				p[(at+1)%n] += float32(math.NaN())
				l2 := testStep
				l2.L2 = 0.1
				for _, step := range []*AdamStep{&testStep, &l2} {
					q, r, s := slices.Clone(p), slices.Clone(m), slices.Clone(v)
					Adam(q, r, s, g, step)
					largest := AdamLargest(p, m, v, g, step)
					require.Equal(t, bits(q, r, s), bits(p, m, v))
					want := float32(0)
					for _, x := range p {
						if x = max(x, -x); x > want {
							want = x
						}
					}
					require.Equal(t, want, largest, "of %v", p)
				}
			}
		}
	})
}

// bits returns the bit patterns of vectors, as NaN is not equal to itself.
func bits(vectors ...[]float32) (all []uint32) {
	for _, v := range vectors {
		for _, x := range v {
			all = append(all, math.Float32bits(x))
		}
	}
	return all
}
