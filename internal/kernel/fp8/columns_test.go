package fp8_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/tensor"
)

func TestAmaxColumns(t *testing.T) {
	const guard = 0xa5
	special := []float32{float32(math.NaN()), float32(math.Inf(-1)), float32(math.Copysign(0, -1)), -1e-45, math.MaxFloat32}
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, rows := range []int{0, 1, 2, 5, 32} {
			for _, cols := range []int{0, 1, 15, 16, 63, 64, 65, 255, 256, 300, 512, 600} {
				pitch := cols + 3
				x, want, got := make([]float32, rows*pitch), make([]float32, cols), make([]float32, cols+1)
				for i := range x {
					if x[i] = float32(r.NormFloat64()); r.IntN(20) == 0 {
						x[i] = special[r.IntN(len(special))]
					}
					if c := i % pitch; c < cols && math.Abs(float64(x[i])) > float64(want[c]) {
						want[c] = float32(math.Abs(float64(x[i])))
					}
				}
				for i := range got {
					got[i] = guard
				}
				fp8.AmaxColumns(got[:cols], x, pitch, rows)
				require.Equal(t, want, got[:cols], "%d rows of %d", rows, cols)
				require.EqualValues(t, guard, got[cols])
			}
		}
	})
	require.Panics(t, func() { fp8.AmaxColumns(make([]float32, 4), make([]float32, 7), 4, 2) })
}

func TestAmaxColumnsOfBF16(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, rows := range []int{0, 1, 2, 5, 16} {
			for _, cols := range []int{0, 16, 255, 256, 300, 512, 600} {
				for _, nan := range []int{cols, cols / 2} { // the first column that may have one
					pitch := cols + 3
					x, bits := make([]float32, rows*pitch), make([]uint16, rows*pitch)
					for i := range x {
						b := tensor.ToBFloat16(float32(r.NormFloat64()))
						if i%pitch >= nan && r.IntN(20) == 0 {
							b = tensor.ToBFloat16(float32(math.NaN()))
						}
						bits[i], x[i] = uint16(b), b.Float32()
					}
					want, got := make([]float32, cols), make([]float32, cols+1)
					fp8.AmaxColumns(want, x, pitch, rows)
					done := fp8.AmaxColumnsBF16(got[:cols], bits, pitch, rows)
					require.Equal(t, want[:done], got[:done], "%d rows of %d", rows, cols)
					require.Zero(t, got[cols])
					if cpufeat.Has(cpufeat.AVX512) && nan == cols && rows > 0 {
						require.Equal(t, cols&^255, done, "what has no NaN is done")
					}
				}
			}
		}
	})
	require.Panics(t, func() { fp8.AmaxColumnsBF16(make([]float32, 4), make([]uint16, 7), 4, 2) })
}

func TestEncodeColumnsRoundsAsEncodeDoes(t *testing.T) {
	const guard = 0xa5
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			values := numbers(f)
			kerneltest.EachFeature(t, func(t *testing.T) {
				for _, rows := range []int{0, 1, 3, 33} {
					for _, cols := range []int{0, 1, 16, 63, 64, 65, 128, 200} {
						pitch, dstPitch := cols+3, cols+5
						x, scale, dst := make([]float32, rows*pitch), make([]float32, cols), make([]byte, rows*dstPitch+1)
						for i := range x {
							x[i] = values[i*7%len(values)]
						}
						for c := range scale {
							scale[c] = float32(c%5) - 1
						}
						want := slices.Repeat([]byte{guard}, len(dst))
						copy(dst, want)
						for r := range rows {
							f.f.EncodeEach(want[r*dstPitch:], x[r*pitch:][:cols], scale)
						}
						f.f.EncodeColumns(dst, dstPitch, x, pitch, rows, scale)
						require.Equal(t, want, dst, "%d rows of %d", rows, cols)
					}
				}
			})
		})
	}
	require.Panics(t, func() { fp8.E4M3.EncodeColumns(make([]byte, 7), 4, make([]float32, 8), 4, 2, make([]float32, 4)) })
	require.Panics(t, func() { fp8.E4M3.EncodeColumns(make([]byte, 8), 4, make([]float32, 7), 4, 2, make([]float32, 4)) })
}

func TestScalesAreThoseOfScaleOf(t *testing.T) {
	magnitudes := []float32{0, 1e-45, 0x1p-126, 1e-30, 0.3, 0.5, 1, 448, 57344, 1e30, math.MaxFloat32, float32(math.Inf(1))}
	r := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		magnitudes = append(magnitudes, math.Float32frombits(r.Uint32()&0x7f7fffff))
	}
	for _, f := range formats {
		kerneltest.EachFeature(t, func(t *testing.T) {
			for _, epsilon := range []float32{0, -1, 0.5, float32(math.Inf(1)), float32(math.NaN())} {
				for _, pow2 := range []bool{false, true} {
					for _, n := range []int{0, 1, 16, 31, len(magnitudes)} {
						scale, inv := slices.Clone(magnitudes[:n]), make([]float32, n)
						f.f.Scales(inv, scale, epsilon, pow2)
						for i, a := range magnitudes[:n] {
							want := fp8.ScaleOf(a, f.f.Largest(), epsilon, pow2)
							require.Equal(t, want, scale[i], "magnitude %v, epsilon %v, pow2 %v", a, epsilon, pow2)
							require.Equal(t, 1/want, inv[i])
						}
					}
				}
			}
		})
	}
}
