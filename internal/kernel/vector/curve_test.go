package vector_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/vector"
)

// cdf returns Φ(x) in f64.
func cdf(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// pdf returns φ(x) in f64.
func pdf(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

func TestNormal(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		kerneltest.EachShape(func(n, offset int) {
			p, d, x := kerneltest.NewOperand(r, (offset*5+1)%16, n), kerneltest.NewOperand(r, (offset*3+2)%16, n), kerneltest.NewOperand(r, offset, n)
			vector.Normal(p.Data, d.Data, x.Data)
			for i, v := range x.Data {
				require.InEpsilon(t, cdf(float64(v)), p.Data[i], 1e-6, "element %d of %d at %d", i, n, offset)
				require.InEpsilon(t, pdf(float64(v)), d.Data[i], 1e-6, "element %d of %d at %d", i, n, offset)
			}
			p.RequireGuards(t)
			d.RequireGuards(t)
			same, other := append(make([]float32, 0, n), x.Data...), make([]float32, n)
			vector.Normal(same, other, same)
			require.Equal(t, p.Data, same)
			copy(same, x.Data)
			vector.Normal(other, same, same)
			require.Equal(t, d.Data, same)
		})
	})
}

// The error is measured in units of the result, to which the rounding of x² adds.
func TestNormalHasFewUnitsOfError(t *testing.T) {
	const n = 1 << 15
	x, p, d := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = -12 + 24*float32(i)/n
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		vector.Normal(p, d, x)
		for i, v := range x {
			unit := (6 + float64(v)*float64(v)) * 0x1p-24
			require.InEpsilon(t, cdf(float64(v)), p[i], unit, "Φ(%v)", v)
			require.InEpsilon(t, pdf(float64(v)), d[i], unit, "φ(%v)", v)
		}
	})
}

func TestNormalAtTheEndsOfTheRange(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	tests := []struct{ x, cdf, pdf float32 }{
		{14, 1, 0}, {-14, 0, 0}, {1e30, 1, 0}, {-1e30, 0, 0}, {math.MaxFloat32, 1, 0}, {-math.MaxFloat32, 0, 0}, {inf, 1, 0}, {-inf, 0, 0}, {nan, nan, nan}, {-nan, nan, nan},
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		for lead := range 20 {
			x := make([]float32, lead, lead+len(tests))
			for _, tt := range tests {
				x = append(x, tt.x)
			}
			p, d := make([]float32, len(x)), make([]float32, len(x))
			vector.Normal(p, d, x)
			for i, tt := range tests {
				requireSame(t, tt.cdf, p[lead+i], "Φ(%v)", tt.x)
				requireSame(t, tt.pdf, d[lead+i], "φ(%v)", tt.x)
			}
		}
	})
}

func TestSoftCap(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, limit := range []float32{0.25, 1, 50} {
			kerneltest.EachShape(func(n, offset int) {
				dst, x := kerneltest.NewOperand(r, (offset*5+1)%16, n), kerneltest.NewOperand(r, offset, n)
				vector.SoftCap(dst.Data, x.Data, limit)
				for i, v := range x.Data {
					want := float64(limit) * math.Tanh(float64(v)/float64(limit))
					require.InDelta(t, want, dst.Data[i], 4e-7*math.Abs(want), "element %d of %d at %d", i, n, offset)
				}
				dst.RequireGuards(t)
				vector.SoftCap(x.Data, x.Data, limit)
				require.Equal(t, dst.Data, x.Data)
			})
		}
	})
}

func TestSoftCapAtTheEndsOfTheRange(t *testing.T) {
	const tiny = math.SmallestNonzeroFloat32
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	tests := []struct{ x, want float32 }{
		{0, 0}, {0x1p-100, 0x1p-100}, {64 * tiny, 64 * tiny}, {1e30, 2}, {-1e30, -2}, {math.MaxFloat32, 2}, {inf, 2}, {-inf, -2}, {nan, nan}, {-nan, nan},
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		for lead := range 20 {
			x := make([]float32, lead, lead+len(tests))
			for _, tt := range tests {
				x = append(x, tt.x)
			}
			vector.SoftCap(x, x, 2)
			for i, tt := range tests {
				requireSame(t, tt.want, x[lead+i], "cap of %v", tt.x)
			}
		}
	})
}

func BenchmarkNormal(b *testing.B) {
	x, p, d := make([]float32, 4096), make([]float32, 4096), make([]float32, 4096)
	for i := range x {
		x[i] = -4 + 8*float32(i)/4096
	}
	for b.Loop() {
		vector.Normal(p, d, x)
	}
	b.SetBytes(4 * 4096)
}

func BenchmarkSoftCap(b *testing.B) {
	x, dst := make([]float32, 4096), make([]float32, 4096)
	for i := range x {
		x[i] = -4 + 8*float32(i)/4096
	}
	for b.Loop() {
		vector.SoftCap(dst, x, 2)
	}
	b.SetBytes(4 * 4096)
}
