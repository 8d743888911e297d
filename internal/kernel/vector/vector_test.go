package vector_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReductionsMatchFloat64(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		kerneltest.EachShape(func(n, offset int) {
			x, y := kerneltest.NewOperand(r, offset, n), kerneltest.NewOperand(r, (offset*7+3)%16, n)
			var dot, sum, magnitude float64
			largest := math.Inf(-1)
			for i, v := range x.Data {
				dot += float64(v) * float64(y.Data[i])
				sum += float64(v)
				magnitude += math.Abs(float64(v)) * (1 + math.Abs(float64(y.Data[i])))
				largest = max(largest, float64(v))
			}
			tolerance := magnitude*float64(n)*0x1p-24 + 1e-30
			require.InDelta(t, dot, vector.Dot(x.Data, y.Data), tolerance, "dot of %d at %d", n, offset)
			require.InDelta(t, sum, vector.Sum(x.Data), tolerance, "sum of %d at %d", n, offset)
			require.Equal(t, float32(largest), vector.Max(x.Data), "max of %d at %d", n, offset)
			x.RequireGuards(t)
			y.RequireGuards(t)
		})
	})
}

func TestReductionsDoNotDependOnAlignment(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		x, y := kerneltest.NewOperand(r, 0, 133), kerneltest.NewOperand(r, 0, 133)
		dot, sum, squares := vector.Dot(x.Data, y.Data), vector.Sum(x.Data), vector.SumSquares(x.Data)
		for offset := range 16 {
			a, b := kerneltest.NewOperand(r, offset, 133), kerneltest.NewOperand(r, 15-offset, 133)
			copy(a.Data, x.Data)
			copy(b.Data, y.Data)
			assert.Equal(t, dot, vector.Dot(a.Data, b.Data))
			assert.Equal(t, sum, vector.Sum(a.Data))
			assert.Equal(t, squares, vector.SumSquares(a.Data))
		}
	})
}

func TestMaxOfSpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	kerneltest.EachFeature(t, func(t *testing.T) {
		assert.Equal(t, -inf, vector.Max(nil))
		assert.Equal(t, -inf, vector.Max([]float32{-inf, -inf, -inf}))
		assert.Equal(t, inf, vector.Max([]float32{1, inf, 2}))
		for n := 1; n < 70; n++ {
			for at := range n {
				x := make([]float32, n)
				for i := range x {
					x[i] = -5
				}
				x[at] = -3
				require.Equal(t, float32(-3), vector.Max(x), "%d of %d", at, n)
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
		{"axpy", func(dst, x, _ []float32) { vector.Axpy(a, x, dst) }, func(d, x, _ float64) float64 { return d + a*x }},
		{"scale", func(dst, x, _ []float32) { vector.Scale(a, dst, x) }, func(_, x, _ float64) float64 { return a * x }},
		{"add", vector.Add, func(_, x, y float64) float64 { return x + y }},
		{"mul", vector.Mul, func(_, x, y float64) float64 { return x * y }},
		{"mulsub", func(dst, x, y []float32) { vector.MulSub(dst, x, y, a) }, func(_, x, y float64) float64 { return x * (y - a) }},
		{"exp", func(dst, x, _ []float32) { exp(dst, x) }, func(_, x, _ float64) float64 { return math.Exp(x) }},
		{"expscale", func(dst, x, _ []float32) { vector.ExpScale(dst, x, 0.5, a) }, func(_, x, _ float64) float64 { return a * math.Exp(x-0.5) }},
		{"sigmoid", func(dst, x, _ []float32) { vector.Sigmoid(dst, x) }, func(_, x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"clamp", func(dst, x, _ []float32) { vector.Clamp(dst, x, -0.5, a) }, func(_, x, _ float64) float64 { return min(max(x, -0.5), a) }},
		{"keep", func(dst, x, y []float32) { vector.Keep(dst, y, x, -0.5, a) }, func(_, x, y float64) float64 {
			if x < -0.5 || x > a {
				return 0
			}
			return y
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kerneltest.EachFeature(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(5, 6))
				kerneltest.EachShape(func(n, offset int) {
					dst, x, y := kerneltest.NewOperand(r, (offset*5+1)%16, n), kerneltest.NewOperand(r, offset, n), kerneltest.NewOperand(r, (offset*3+2)%16, n)
					want := make([]float64, n)
					for i := range want {
						want[i] = tt.want(float64(dst.Data[i]), float64(x.Data[i]), float64(y.Data[i]))
					}
					tt.run(dst.Data, x.Data, y.Data)
					for i, v := range dst.Data {
						require.InDelta(t, want[i], v, 4e-7*(1+math.Abs(want[i])), "element %d of %d at %d", i, n, offset)
					}
					dst.RequireGuards(t)
				})
			})
		})
	}
}

func TestDestinationMayBeTheSource(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range []int{1, 15, 16, 33, 100} {
			x, y, dst := kerneltest.NewOperand(r, 3, n), kerneltest.NewOperand(r, 5, n), kerneltest.NewOperand(r, 0, n)
			for name, run := range map[string]func(dst, x []float32){
				"exp":     exp,
				"expsum":  func(dst, x []float32) { vector.ExpSum(dst, x, 0.5) },
				"sigmoid": vector.Sigmoid,
				"gate":    func(dst, x []float32) { vector.Gate(dst, x, y.Data, gelu) },
				"clamp":   func(dst, x []float32) { vector.Clamp(dst, x, 0, 1) },
				"keep":    func(dst, x []float32) { vector.Keep(dst, y.Data, x, 0, 1) },
				"scale":   func(dst, x []float32) { vector.Scale(3, dst, x) },
				"add":     func(dst, x []float32) { vector.Add(dst, x, y.Data) },
				"mul":     func(dst, x []float32) { vector.Mul(dst, x, y.Data) },
			} {
				same := append([]float32(nil), x.Data...)
				run(dst.Data, x.Data)
				run(same, same)
				assert.Equal(t, dst.Data, same, name)
			}
		}
	})
}

// exp stores the exponential function alone.
func exp(dst, x []float32) { vector.ExpScale(dst, x, 0, 1) }

func TestExpIsWithinTwoUnits(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		const n = 1 << 16
		x, got := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = -87.3 + float32(i)*(88.7+87.3)/n
		}
		exp(got, x)
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
	kerneltest.EachFeature(t, func(t *testing.T) {
		for lead := range 40 {
			x := make([]float32, lead, lead+len(give))
			x = append(x, give...)
			got := make([]float32, len(x))
			exp(got, x)
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
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		kerneltest.EachShape(func(n, offset int) {
			x, dst := kerneltest.NewOperand(r, offset, n), kerneltest.NewOperand(r, (offset+9)%16, n)
			const shift = 1.5
			got := vector.ExpSum(dst.Data, x.Data, shift)
			sum := 0.0
			for i, v := range x.Data {
				want := math.Exp(float64(v) - shift)
				sum += want
				require.InEpsilon(t, want, dst.Data[i], 1e-6)
			}
			require.InDelta(t, sum, got, 1e-6*(sum+1), "sum of %d at %d", n, offset)
			dst.RequireGuards(t)
		})
		assert.Zero(t, vector.ExpSum(make([]float32, 3), []float32{-1e30, -1e30, float32(math.Inf(-1))}, 0))
	})
}

func TestSigmoidOfSpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	give := []float32{0, 20, 87, 88.8, 1e30, inf, -20, -80, -90, -1e30, -inf, float32(math.NaN())}
	kerneltest.EachFeature(t, func(t *testing.T) {
		for lead := range 20 {
			x := append(make([]float32, lead), give...)
			got := make([]float32, len(x))
			vector.Sigmoid(got, x)
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
	assert.Panics(t, func() { vector.Dot(x, short) })
	assert.Panics(t, func() { vector.Axpy(1, x, short) })
	assert.Panics(t, func() { exp(short, x) })
	assert.Panics(t, func() { vector.Mul(x, x, short) })
}

func TestExp1IsExp(t *testing.T) {
	for x := float32(-90); x < 90; x += 0.37 {
		got := make([]float32, 1)
		exp(got, []float32{x})
		if got[0] == 0 || math.IsInf(float64(got[0]), 0) {
			assert.Equal(t, got[0], vector.Exp1(x))
			continue
		}
		assert.InEpsilon(t, got[0], vector.Exp1(x), 3e-7)
	}
}
