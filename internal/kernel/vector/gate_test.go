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

var gelu = vector.Swish{Linear: 1.5957691, Cubic: 0.071354814}

// gates are SiLU, one that falls, and GELU.
var gates = []vector.Swish{{Linear: 1}, {Linear: -0.5}, gelu}

// logistic returns σ(u) and u′ of a gate in f64.
func logistic(f vector.Swish, a float64) (s, slope float64) {
	linear, cubic := float64(f.Linear), float64(f.Cubic)
	return 1 / (1 + math.Exp(-a*(linear+cubic*a*a))), linear + 3*cubic*a*a
}

func TestGate(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, f := range gates {
			kerneltest.EachShape(func(n, offset int) {
				dst, a, b := kerneltest.NewOperand(r, (offset*5+1)%16, n), kerneltest.NewOperand(r, offset, n), kerneltest.NewOperand(r, (offset*7+3)%16, n)
				vector.Gate(dst.Data, a.Data, b.Data, f)
				for i := range n {
					x, y := float64(a.Data[i]), float64(b.Data[i])
					s, _ := logistic(f, x)
					require.InDelta(t, x*s*y, dst.Data[i], 1e-6*(1+math.Abs(x*y)), "%v: element %d of %d at %d", f, i, n, offset)
				}
				dst.RequireGuards(t)
			})
		}
	})
}

func TestGateGrad(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, f := range gates {
			kerneltest.EachShape(func(n, offset int) {
				da, db := kerneltest.NewOperand(r, (offset*5+1)%16, n), kerneltest.NewOperand(r, (offset*3+2)%16, n)
				dy, a, b := kerneltest.NewOperand(r, (offset+4)%16, n), kerneltest.NewOperand(r, offset, n), kerneltest.NewOperand(r, (offset*7+3)%16, n)
				vector.GateGrad(da.Data, db.Data, dy.Data, a.Data, b.Data, f)
				for i := range n {
					d, x, y := float64(dy.Data[i]), float64(a.Data[i]), float64(b.Data[i])
					s, slope := logistic(f, x)
					require.InDelta(t, d*y*(s+x*s*(1-s)*slope), da.Data[i], 2e-6*(1+math.Abs(d*y)), "%v: da %d of %d at %d", f, i, n, offset)
					require.InDelta(t, d*x*s, db.Data[i], 1e-6*(1+math.Abs(d*x)), "%v: db %d of %d at %d", f, i, n, offset)
				}
				da.RequireGuards(t)
				db.RequireGuards(t)
				same := append(make([]float32, 0, n), dy.Data...)
				vector.GateGrad(same, make([]float32, n), same, a.Data, b.Data, f)
				require.Equal(t, da.Data, same)
				vector.GateGrad(a.Data, b.Data, dy.Data, a.Data, b.Data, f)
				require.Equal(t, da.Data, a.Data)
				require.Equal(t, db.Data, b.Data)
			})
		}
	})
}

// 1 − σ is small where the gate is nearly open, and multiplied with numbers that are not.
func TestGateGradKeepsDigitsWhereTheGateIsNearlyOpen(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		for _, f := range gates {
			const n = 1 << 14
			a, da, db, ones := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range a {
				a[i], ones[i] = -8+16*float32(i)/n, 1
			}
			vector.GateGrad(da, db, ones, a, ones, f)
			for i, x := range a {
				s, slope := logistic(f, float64(x))
				require.InDelta(t, s+float64(x)*s*(1-s)*slope, da[i], 4*0x1p-24, "%v: da of %v", f, x)
			}
		}
	})
}

func TestGateAtTheEndsOfTheRange(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	tests := []struct{ a, want, slope float32 }{
		{0, 0, 0.5}, {1e30, 1e30, 1}, {math.MaxFloat32, math.MaxFloat32, 1}, {-1e30, 0, 0}, {-math.MaxFloat32, 0, 0},
		{inf, inf, nan}, {-inf, nan, nan}, {nan, nan, nan},
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		for _, f := range []vector.Swish{{Linear: 1}, gelu} {
			for lead := range 20 {
				a := make([]float32, lead, lead+len(tests))
				for _, tt := range tests {
					a = append(a, tt.a)
				}
				ones, y, da, db := make([]float32, len(a)), make([]float32, len(a)), make([]float32, len(a)), make([]float32, len(a))
				for i := range ones {
					ones[i] = 1
				}
				vector.Gate(y, a, ones, f)
				vector.GateGrad(da, db, ones, a, ones, f)
				for i, tt := range tests {
					i += lead
					requireSame(t, tt.want, y[i], "%v: gate of %v", f, tt.a)
					requireSame(t, tt.want, db[i], "%v: db of %v", f, tt.a)
					requireSame(t, tt.slope, da[i], "%v: da of %v", f, tt.a)
				}
			}
		}
	})
}

func TestBoundsLetNaNPass(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := []float32{-inf, -2, -1, 0, 1, 2, inf, nan}
	clamped := []float32{-1, -1, -1, 0, 1, 1, 1, nan}
	kept := []float32{0, 0, 7, 7, 7, 0, 0, 7}
	kerneltest.EachFeature(t, func(t *testing.T) {
		for lead := range 20 {
			give := append(make([]float32, lead), x...)
			got, sevens := make([]float32, len(give)), make([]float32, len(give))
			for i := range sevens {
				sevens[i] = 7
			}
			vector.Clamp(got, give, -1, 1)
			for i, want := range clamped {
				requireSame(t, want, got[lead+i], "clamp of %v", x[i])
			}
			vector.Keep(got, sevens, give, -1, 1)
			assert.Equal(t, kept, got[lead:])
		}
	})
}

// requireSame requires a number, or NaN.
func requireSame(t *testing.T, want, got float32, format string, args ...any) {
	t.Helper()
	require.Truef(t, want == got || want != want && got != got, "want %v, got %v: "+format, append([]any{want, got}, args...)...)
}
