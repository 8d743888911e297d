package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Form is a kernel over slices of one length, the first of which are results, with its formula.
type Form struct {
	Name    string
	Slices  int
	Results int
	Unit    int // lengths are multiples of Unit
	Call    func(s [][]float32) float32
	Formula func(s [][]float64) float64 // the same in float64
}

// Surround is the number of elements before and after the slices of a form.
const Surround = 16

// Fill draws values that every form accepts: those of the third slice are not negative.
func Fill(rng *rand.Rand, slices, n int) [][]float32 {
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

// CheckForms compares every form with its formula for every length and alignment on every
// instruction set.
func CheckForms(t *testing.T, forms []Form) {
	for _, f := range forms {
		t.Run(f.Name, func(t *testing.T) {
			EachFeature(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, 2))
				for n := 0; n <= 67; n += f.Unit {
					for offset := range Surround {
						f.check(t, rng, n, offset)
					}
				}
				f.check(t, rng, 1030, 1)
			})
		})
	}
}

func (f Form) check(t *testing.T, rng *rand.Rand, n, offset int) {
	t.Helper()
	memory := Fill(rng, f.Slices, n+2*Surround)
	before, views, wide := make([][]float32, f.Slices), make([][]float32, f.Slices), make([][]float64, f.Slices)
	for k, mem := range memory {
		before[k] = append([]float32(nil), mem...)
		views[k] = mem[offset : offset+n]
		for _, v := range views[k] {
			wide[k] = append(wide[k], float64(v))
		}
	}
	got := float64(f.Call(views))
	want := f.Formula(wide)
	assert.InDelta(t, want, got, 1e-5+2e-7*math.Abs(want), "%d elements at %d", n, offset)
	for k := range memory {
		for i := range memory[k] {
			inside := k < f.Results && i >= offset && i < offset+n
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

// BenchForms runs every form over slices that fit in the caches.
func BenchForms(b *testing.B, forms []Form) {
	for _, f := range forms {
		b.Run(f.Name, func(b *testing.B) {
			s := Fill(rand.New(rand.NewPCG(1, 1)), f.Slices, 2048)
			b.SetBytes(int64(f.Slices+f.Results) * 2048 * 4)
			for b.Loop() {
				f.Call(s)
			}
		})
	}
}
