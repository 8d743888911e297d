package fp8_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/tensor"
)

// blocksToQuantize returns blocks of numbers of very different magnitudes, among them zeros, the
// smallest and largest numbers and, after the first half, infinities and NaNs.
func blocksToQuantize(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, n)
	var unit float64
	var zero bool
	for lo := 0; lo < n; lo += 32 {
		if lo%128 == 0 || r.IntN(4) == 0 {
			unit, zero = math.Ldexp(1, r.IntN(276)-149), r.IntN(8) == 0
		}
		for i := lo; i < min(lo+32, n); i++ {
			x[i] = float32(r.NormFloat64() * unit)
		}
		special := []float32{0, float32(math.Copysign(0, -1)), math.MaxFloat32, -math.MaxFloat32, 1e-45, float32(math.Inf(-1)), float32(math.NaN())}
		if at := lo + r.IntN(32); at < n && r.IntN(3) == 0 {
			if lo < n/2 {
				special = special[:5]
			}
			x[at] = special[r.IntN(len(special))]
		}
		if zero {
			clear(x[lo:min(lo+32, n)])
		}
	}
	return x
}

func amaxOf(x []float32) (amax float32) {
	for _, v := range x {
		if v == v {
			amax = max(amax, v, -v)
		}
	}
	return amax
}

func TestQuantizeHasTheScaleOfEveryBlock(t *testing.T) {
	const guard = 0xa5
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			kerneltest.EachFeature(t, func(t *testing.T) {
				for k, block := range []int{1, 32, 100, 128, 256} {
					for i, n := range []int{0, 1, 31, 127, 128, 129, 500, 4096, 5000} {
						x := blocksToQuantize(n, uint64(16*k+i))
						epsilon := []float32{1e-3, 0, -1, float32(math.Inf(1)), float32(math.NaN())}[(k+i)%5]
						pow2 := i%2 == 0
						blocks := (n + block - 1) / block
						dst, inv := make([]byte, n+1), make([]float32, blocks+1)
						dst[n], inv[blocks] = guard, guard
						f.f.Quantize(dst[:n], inv[:blocks], x, block, epsilon, pow2)
						require.EqualValues(t, guard, dst[n])
						require.EqualValues(t, guard, inv[blocks])
						for b := range blocks {
							values := x[b*block : min(b*block+block, n)]
							scale := fp8.ScaleOf(amaxOf(values), f.f.Largest(), epsilon, pow2)
							require.Equal(t, 1/scale, inv[b], "block %d of %d of %d, amax %v", b, n, block, amaxOf(values))
							for j, v := range values {
								require.Equal(t, f.round(v*scale), dst[b*block+j], "%v, element %d of block %d of %d", v, j, b, block)
							}
						}
					}
				}
			})
		})
	}
	assert.Panics(t, func() { fp8.E4M3.Quantize(make([]byte, 128), nil, make([]float32, 128), 128, 0, false) })
	assert.Panics(t, func() { fp8.E4M3.Quantize(make([]byte, 127), make([]float32, 1), make([]float32, 128), 128, 0, false) })
}

func TestQuantizeE8M0HasTheCodeOfEveryBlock(t *testing.T) {
	const guard, block = 0xa5, fp8.BlockE8M0
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			kerneltest.EachFeature(t, func(t *testing.T) {
				for i, n := range []int{0, 1, 31, 32, 96, 127, 128, 129, 500, 4096, 5000} {
					x := blocksToQuantize(n, uint64(i))
					blocks := (n + block - 1) / block
					dst, codes := make([]byte, n+1), make([]byte, blocks+1)
					dst[n], codes[blocks] = guard, guard
					f.f.QuantizeE8M0(dst[:n], codes[:blocks], x)
					require.EqualValues(t, guard, dst[n])
					require.EqualValues(t, guard, codes[blocks])
					for b := range blocks {
						values := x[b*block : min(b*block+block, n)]
						code := tensor.CeilFloat8E8M0(float64(amaxOf(values)) / float64(f.f.Largest()))
						require.Equal(t, byte(code), codes[b], "block %d of %d, amax %v", b, n, amaxOf(values))
						for j, v := range values {
							require.Equal(t, f.round(v/code.Float32()), dst[b*block+j], "%v, element %d of block %d", v, j, b)
						}
					}
				}
			})
		})
	}
	assert.Panics(t, func() { fp8.E4M3.QuantizeE8M0(make([]byte, 32), nil, make([]float32, 32)) })
}

func TestEncodeAmaxIsEncodeAndAmax(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			kerneltest.EachFeature(t, func(t *testing.T) {
				for i, n := range []int{0, 1, 16, 63, 64, 65, 130, 4096} {
					x := blocksToQuantize(n, uint64(i))
					for _, scale := range []float32{1, -3, 0, 1e30, float32(math.Inf(1)), float32(math.NaN())} {
						got := make([]byte, n)
						require.Equal(t, amaxOf(x), f.f.EncodeAmax(got, x, scale))
						for j, v := range x {
							require.Equal(t, f.round(v*scale), got[j], "%v times %v", v, scale)
						}
					}
				}
			})
		})
	}
	assert.Panics(t, func() { fp8.E4M3.EncodeAmax(make([]byte, 3), make([]float32, 4), 1) })
}

func TestBF16IsQuantizedAsItsNumbersAre(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			kerneltest.EachFeature(t, func(t *testing.T) {
				for i, n := range []int{0, 16, 100, 512, 1100, 4096, 5000} {
					x := blocksToQuantize(n, uint64(i))
					bits := make([]uint16, n)
					for j, v := range x {
						b := tensor.ToBFloat16(v)
						if j < n/2 && math.IsInf(float64(b.Float32()), 0) {
							b = tensor.ToBFloat16(-1)
						}
						bits[j], x[j] = uint16(b), b.Float32()
					}
					want, got, pow2 := make([]byte, n), make([]byte, n), i%2 == 0

					amax := f.f.EncodeAmax(want, x, 3)
					if done, largest := fp8.AmaxBF16(bits); done > 0 {
						require.Equal(t, amaxOf(x[:done]), largest)
					}
					done, largest := fp8.AmaxBF16(bits[:n/2])
					require.Equal(t, amaxOf(x[:done]), largest)
					done, gotAmax := f.f.EncodeAmaxBF16(got, bits, 3)
					require.Equal(t, want[:done], got[:done])
					require.Equal(t, make([]byte, n-done), got[done:])
					if done == n {
						require.Equal(t, amax, gotAmax)
					}

					inv, gotInv := make([]float32, (n+127)/128), make([]float32, (n+127)/128)
					f.f.Quantize(want, inv, x, 128, 0, pow2)
					clear(got)
					done = f.f.QuantizeBF16(got, gotInv, bits, 128, 0, pow2)
					require.Equal(t, inv[:done], gotInv[:done])
					require.Equal(t, want[:done*128], got[:done*128])

					codes, gotCodes := make([]byte, (n+31)/32), make([]byte, (n+31)/32)
					f.f.QuantizeE8M0(want, codes, x)
					clear(got)
					done = f.f.QuantizeE8M0BF16(got, gotCodes, bits)
					require.Equal(t, codes[:done], gotCodes[:done])
					require.Equal(t, want[:done*fp8.BlockE8M0], got[:done*fp8.BlockE8M0])
					if cpufeat.Has(cpufeat.AVX512) {
						require.Equal(t, n >= 1024, done > 0, "what has no NaN is done")
						largestOf, _ := fp8.AmaxBF16(bits[:n/2])
						require.Equal(t, n/2&^63, largestOf)
					}
				}
			})
		})
	}
}
