package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/cpufeat/cpufeattest"
	"github.com/primus-fl/primus/internal/simd"
)

// guard surrounds every operand; a kernel must neither change it nor use it in a result.
var guard = float32(math.NaN())

const margin = 80

// operand is n elements at an offset inside a guarded block.
type operand struct {
	block []float32
	data  []float32
}

func newOperand(r *rand.Rand, offset, n int) operand {
	block := make([]float32, margin+offset+n+margin)
	for i := range block {
		block[i] = guard
	}
	data := block[margin+offset : margin+offset+n]
	for i := range data {
		data[i] = float32(r.NormFloat64())
	}
	return operand{block: block, data: data}
}

func (o operand) requireGuards(t *testing.T) {
	t.Helper()
	lo := len(o.block) - margin - len(o.data)
	for i, v := range o.block {
		if (i < lo || i >= lo+len(o.data)) && v == v {
			require.Failf(t, "guard", "element %d beside the operand was overwritten with %v", i-lo, v)
		}
	}
}

// eachShape calls f for lengths 0 to 67 and some longer ones at every offset of a cache line.
func eachShape(f func(n, offset int)) {
	lengths := []int{96, 127, 128, 129, 200, 257}
	for n := range 68 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		for offset := range 16 {
			f(n, offset)
		}
	}
}

func TestReductionsMatchFloat64(t *testing.T) {
	cpufeattest.Each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		eachShape(func(n, offset int) {
			x, y := newOperand(r, offset, n), newOperand(r, (offset*7+3)%16, n)
			var dot, sum, squares, magnitude float64
			largest := math.Inf(-1)
			for i, v := range x.data {
				dot += float64(v) * float64(y.data[i])
				sum += float64(v)
				squares += float64(v) * float64(v)
				magnitude += math.Abs(float64(v))*(1+math.Abs(float64(y.data[i]))) + float64(v)*float64(v)
				largest = max(largest, float64(v))
			}
			tolerance := magnitude*float64(n)*0x1p-24 + 1e-30
			require.InDelta(t, dot, simd.Dot(x.data, y.data), tolerance, "dot of %d at %d", n, offset)
			require.InDelta(t, sum, simd.Sum(x.data), tolerance, "sum of %d at %d", n, offset)
			require.InDelta(t, squares, simd.SumSquares(x.data), tolerance, "squares of %d at %d", n, offset)
			require.Equal(t, float32(largest), simd.Max(x.data), "max of %d at %d", n, offset)
			x.requireGuards(t)
			y.requireGuards(t)
		})
	})
}

func TestReductionsDoNotDependOnAlignment(t *testing.T) {
	cpufeattest.Each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		x, y := newOperand(r, 0, 133), newOperand(r, 0, 133)
		dot, sum, squares := simd.Dot(x.data, y.data), simd.Sum(x.data), simd.SumSquares(x.data)
		for offset := range 16 {
			a, b := newOperand(r, offset, 133), newOperand(r, 15-offset, 133)
			copy(a.data, x.data)
			copy(b.data, y.data)
			assert.Equal(t, dot, simd.Dot(a.data, b.data))
			assert.Equal(t, sum, simd.Sum(a.data))
			assert.Equal(t, squares, simd.SumSquares(a.data))
		}
	})
}

func TestMaxOfSpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	cpufeattest.Each(t, func(t *testing.T) {
		assert.Equal(t, -inf, simd.Max(nil))
		assert.Equal(t, -inf, simd.Max([]float32{-inf, -inf, -inf}))
		assert.Equal(t, inf, simd.Max([]float32{1, inf, 2}))
		for n := 1; n < 70; n++ {
			for at := range n {
				x := make([]float32, n)
				for i := range x {
					x[i] = -5
				}
				x[at] = -3
				require.Equal(t, float32(-3), simd.Max(x), "%d of %d", at, n)
			}
		}
	})
}

func TestElementwiseMatchFloat64(t *testing.T) {
	const a = 1.25
	tests := []struct {
		name string
		run  func(dst, x, y []float32)
		want func(dst, x, y float64) float64
	}{
		{"axpy", func(dst, x, _ []float32) { simd.Axpy(a, x, dst) }, func(d, x, _ float64) float64 { return d + a*x }},
		{"scale", func(dst, x, _ []float32) { simd.Scale(a, dst, x) }, func(_, x, _ float64) float64 { return a * x }},
		{"add", simd.Add, func(_, x, y float64) float64 { return x + y }},
		{"mul", simd.Mul, func(_, x, y float64) float64 { return x * y }},
		{"mulsub", func(dst, x, y []float32) { simd.MulSub(dst, x, y, a) }, func(_, x, y float64) float64 { return x * (y - a) }},
		{"exp", func(dst, x, _ []float32) { simd.Exp(dst, x) }, func(_, x, _ float64) float64 { return math.Exp(x) }},
		{"expscale", func(dst, x, _ []float32) { simd.ExpScale(dst, x, 0.5, a) }, func(_, x, _ float64) float64 { return a * math.Exp(x-0.5) }},
		{"sigmoid", func(dst, x, _ []float32) { simd.Sigmoid(dst, x) }, func(_, x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"clamp", func(dst, x, _ []float32) { simd.Clamp(dst, x, -0.5, a) }, func(_, x, _ float64) float64 { return min(max(x, -0.5), a) }},
		{"keep", func(dst, x, y []float32) { simd.Keep(dst, y, x, -0.5, a) }, func(_, x, y float64) float64 {
			if x < -0.5 || x > a {
				return 0
			}
			return y
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cpufeattest.Each(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(5, 6))
				eachShape(func(n, offset int) {
					dst, x, y := newOperand(r, (offset*5+1)%16, n), newOperand(r, offset, n), newOperand(r, (offset*3+2)%16, n)
					want := make([]float64, n)
					for i := range want {
						want[i] = tt.want(float64(dst.data[i]), float64(x.data[i]), float64(y.data[i]))
					}
					tt.run(dst.data, x.data, y.data)
					for i, v := range dst.data {
						require.InDelta(t, want[i], v, 4e-7*(1+math.Abs(want[i])), "element %d of %d at %d", i, n, offset)
					}
					dst.requireGuards(t)
				})
			})
		})
	}
}

func TestDestinationMayBeTheSource(t *testing.T) {
	cpufeattest.Each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range []int{1, 15, 16, 33, 100} {
			x, y, dst := newOperand(r, 3, n), newOperand(r, 5, n), newOperand(r, 0, n)
			for name, run := range map[string]func(dst, x []float32){
				"exp":     simd.Exp,
				"expsum":  func(dst, x []float32) { simd.ExpSum(dst, x, 0.5) },
				"sigmoid": simd.Sigmoid,
				"gate":    func(dst, x []float32) { simd.Gate(dst, x, y.data, gelu) },
				"clamp":   func(dst, x []float32) { simd.Clamp(dst, x, 0, 1) },
				"keep":    func(dst, x []float32) { simd.Keep(dst, y.data, x, 0, 1) },
				"scale":   func(dst, x []float32) { simd.Scale(3, dst, x) },
				"add":     func(dst, x []float32) { simd.Add(dst, x, y.data) },
				"mul":     func(dst, x []float32) { simd.Mul(dst, x, y.data) },
			} {
				same := append([]float32(nil), x.data...)
				run(dst.data, x.data)
				run(same, same)
				assert.Equal(t, dst.data, same, name)
			}
		}
	})
}

func TestExpIsWithinTwoUnits(t *testing.T) {
	cpufeattest.Each(t, func(t *testing.T) {
		const n = 1 << 16
		x, got := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = -87.3 + float32(i)*(88.7+87.3)/n
		}
		simd.Exp(got, x)
		worst := 0.0
		for i, v := range got {
			want := math.Exp(float64(x[i]))
			ulp := float64(math.Nextafter32(float32(want), math.MaxFloat32) - float32(want))
			worst = max(worst, math.Abs(float64(v)-want)/ulp)
		}
		assert.LessOrEqual(t, worst, 2.0)
		assert.Greater(t, worst, 0.4, "a float32 cannot be better than half a unit")
	})
}

func TestExpOfSpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	give := []float32{0, 1, -inf, -1000, -87.4, 88.7, 88.8, 89.5, 1e30, inf, float32(math.NaN())}
	want := []float32{1, math.E, 0, 0, 0, float32(math.Exp(float64(float32(88.7)))), inf, inf, inf, inf, float32(math.NaN())}
	cpufeattest.Each(t, func(t *testing.T) {
		for lead := range 40 {
			x := make([]float32, lead, lead+len(give))
			x = append(x, give...)
			got := make([]float32, len(x))
			simd.Exp(got, x)
			for i, w := range want {
				g := got[lead+i]
				switch {
				case w != w:
					require.True(t, g != g, "exp(%v) = %v", give[i], g)
				case math.IsInf(float64(w), 0) || w == 0:
					require.Equal(t, w, g, "exp(%v)", give[i])
				default:
					require.InEpsilon(t, w, g, 3e-7, "exp(%v)", give[i])
				}
			}
		}
	})
}

func TestExpSumShiftsAndAdds(t *testing.T) {
	cpufeattest.Each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		eachShape(func(n, offset int) {
			x, dst := newOperand(r, offset, n), newOperand(r, (offset+9)%16, n)
			const shift = 1.5
			got := simd.ExpSum(dst.data, x.data, shift)
			sum := 0.0
			for i, v := range x.data {
				want := math.Exp(float64(v) - shift)
				sum += want
				require.InEpsilon(t, want, dst.data[i], 1e-6)
			}
			require.InDelta(t, sum, got, 1e-6*(sum+1), "sum of %d at %d", n, offset)
			dst.requireGuards(t)
		})
		assert.Zero(t, simd.ExpSum(make([]float32, 3), []float32{-1e30, -1e30, float32(math.Inf(-1))}, 0))
	})
}

func TestSigmoidOfSpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	give := []float32{0, 20, 87, 88.8, 1e30, inf, -20, -80, -90, -1e30, -inf, float32(math.NaN())}
	cpufeattest.Each(t, func(t *testing.T) {
		for lead := range 20 {
			x := append(make([]float32, lead), give...)
			got := make([]float32, len(x))
			simd.Sigmoid(got, x)
			for i, v := range give {
				want := 1 / (1 + math.Exp(-float64(v)))
				if want != want {
					require.True(t, got[lead+i] != got[lead+i], "σ(%v) = %v", v, got[lead+i])
					continue
				}
				require.InDelta(t, want, got[lead+i], 3e-7*want+1e-37, "σ(%v)", v)
			}
		}
	})
}

func TestShortOperandPanics(t *testing.T) {
	x, short := make([]float32, 8), make([]float32, 7)
	assert.Panics(t, func() { simd.Dot(x, short) })
	assert.Panics(t, func() { simd.Axpy(1, x, short) })
	assert.Panics(t, func() { simd.Exp(short, x) })
	assert.Panics(t, func() { simd.Mul(x, x, short) })
}

func TestExp1IsExp(t *testing.T) {
	for x := float32(-90); x < 90; x += 0.37 {
		got := make([]float32, 1)
		simd.Exp(got, []float32{x})
		if got[0] == 0 || math.IsInf(float64(got[0]), 0) {
			assert.Equal(t, got[0], simd.Exp1(x))
			continue
		}
		assert.InEpsilon(t, got[0], simd.Exp1(x), 3e-7)
	}
}
