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

// limitsOfOne are those of a scale of 1, with which ties go to even codes.
var limitsOfOne = [8]float32{0, math.Nextafter32(0.25, 1), 0.75, math.Nextafter32(1.25, 2), 1.75, math.Nextafter32(2.5, 3), 3.5, math.Nextafter32(5, 6)}

// limitsOfScales are those of scales that are powers of two, about 1 in the middle.
func limitsOfScales() *[128]fp8.E2M1Limits {
	limits := new([128]fp8.E2M1Limits)
	for s := range limits {
		limits[s].Set(limitsOf(s), float32(math.Exp2(float64(60-s))))
	}
	return limits
}

func limitsOf(s int) *[8]float32 {
	scaled := limitsOfOne
	for k := range scaled {
		scaled[k] *= float32(math.Exp2(float64(s - 60)))
	}
	return &scaled
}

// wordsOfScales has the same limits for bfloat16.
func wordsOfScales(t *testing.T) *fp8.E2M1Words {
	words := new(fp8.E2M1Words)
	for s := range 128 {
		require.True(t, words.Set(s, limitsOf(s)))
	}
	return words
}

// block draws elements of a block with a scale of limitsOfScales, and returns their codes.
func block(r *rand.Rand, x []float32, scale byte) []byte {
	specials := []float32{0, float32(math.Copysign(0, -1)), 0.25, -0.75, 1.25, -1.75, 2.5, -3.5, 5, -6, 1e30, float32(math.NaN()), float32(-math.NaN()), float32(math.Inf(-1)), 1e-45}
	codes := make([]byte, len(x)/2)
	for i := range x {
		x[i] = float32(r.NormFloat64() * 3)
		if r.IntN(20) == 0 {
			x[i] = specials[r.IntN(len(specials))]
		}
		x[i] *= float32(math.Exp2(float64(scale) - 60))
		codes[i/2] |= byte(tensor.ToFloat4E2M1(float64(x[i])*math.Exp2(60-float64(scale)))) << (i % 2 * 4)
	}
	return codes
}

func TestCodesOfE2M1(t *testing.T) {
	limits := limitsOfScales()
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for n := 0; n <= 340; n += 2 {
			x, scales := make([]float32, n), make([]byte, (n+15)/16)
			var want []byte
			for i := range scales {
				scales[i] = byte(r.IntN(128))
				want = append(want, block(r, x[16*i:min(16*i+16, n)], scales[i])...)
			}
			got := make([]byte, n/2+1)
			got[n/2] = 0xa5
			fp8.EncodeE2M1(got, x, scales, limits)
			require.Equal(t, append(want, 0xa5), got, "%d elements", n)
		}
	})
	assert.Panics(t, func() { fp8.EncodeE2M1(make([]byte, 7), make([]float32, 16), []byte{0}, limits) })
	assert.Panics(t, func() { fp8.EncodeE2M1(make([]byte, 9), make([]float32, 18), []byte{0}, limits) })
}

func TestCodesOfE2M1FromBF16(t *testing.T) {
	limits, words := limitsOfScales(), wordsOfScales(t)
	assert.False(t, words.Set(0, &[8]float32{0, 1, 1.05, 2, 3, 4, 5, 6}), "limits that are near")
	assert.False(t, words.Set(0, &[8]float32{0, 1, 2, 4, 8, 16, 32, 1e9}), "limits that are far away")
	assert.False(t, words.Set(0, &[8]float32{}))
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{0, 14, 128, 254, 256, 300, 512, 1000, 4096} {
			for _, nan := range []int{n, n * 2 / 3} { // where the first one may be
				x, bits, scales := make([]float32, n), make([]uint16, n), make([]byte, (n+15)/16)
				for i := range scales {
					scales[i] = byte(r.IntN(128))
					block(r, x[16*i:min(16*i+16, n)], scales[i])
				}
				for i, v := range x {
					b := tensor.ToBFloat16(v)
					if v != v && i < nan {
						b = tensor.ToBFloat16(float32(math.Inf(-1)))
					}
					bits[i], x[i] = uint16(b), b.Float32()
				}
				want, got := make([]byte, n/2), make([]byte, n/2+1)
				got[n/2] = 0xa5
				fp8.EncodeE2M1(want, x, scales, limits)
				done := fp8.EncodeE2M1BF16(got, bits, scales, words)
				require.Equal(t, want[:done/2], got[:done/2])
				require.Equal(t, byte(0xa5), got[n/2])

				amaxes, gotAmaxes := make([]float32, len(scales)), make([]float32, len(scales)+1)
				fp8.Amaxes(amaxes, x, 16)
				blocks := fp8.AmaxesE2M1BF16(gotAmaxes, bits)
				require.Equal(t, amaxes[:blocks], gotAmaxes[:blocks])
				require.Zero(t, gotAmaxes[len(scales)])
				if cpufeat.Has(cpufeat.AVX512) && nan == n {
					require.Equal(t, [...]int{n &^ 127, n / 256 * 16}, [...]int{done, blocks}, "what has no NaN is done")
				}
			}
		}
	})
}

func TestCodesOfE2M1AtRandom(t *testing.T) {
	var numbers [8]float64
	for c := range numbers {
		numbers[c] = float64(tensor.Float4E2M1(c).Float32())
	}
	code := func(x float32, factor float64, word uint32) byte {
		v := float64(math.Abs(float64(x)) * factor)
		if v != v {
			return 7
		}
		k := byte(0)
		for k < 7 && v >= numbers[k+1] {
			k++
		}
		if k < 7 && float64(word)*0x1p-32 < (v-numbers[k])/(numbers[k+1]-numbers[k]) {
			k++
		}
		return k | byte(math.Float32bits(x)>>28&8)
	}
	var factors [128]float64
	for s := range factors {
		factors[s] = math.Exp2(float64(s-64)) * (1 + float64(s%7)/9)
	}
	factors[0], factors[1], factors[2] = math.MaxFloat32, 1, 0x1p-126
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for n := 0; n <= 340; n += 2 {
			x, words, scales := make([]float32, n), make([]uint32, n), make([]byte, (n+15)/16)
			for i := range scales {
				scales[i] = byte(r.IntN(128) >> (r.IntN(2) * 6))
			}
			want := make([]byte, n/2)
			for i := range x {
				factor := factors[scales[i/16]]
				switch r.IntN(8) {
				case 0:
					x[i] = math.Float32frombits(r.Uint32())
				case 1:
					x[i] = []float32{0, float32(math.Copysign(0, -1)), 1e-45, float32(math.NaN()), -float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[r.IntN(7)]
				case 2:
					x[i] = float32(float64(r.IntN(49)-24) / 4 / factor)
				case 3:
					x[i] = math.Nextafter32(float32(numbers[r.IntN(8)]/factor), float32(r.IntN(9)))
				default:
					x[i] = float32(r.NormFloat64() * 3 / factor)
				}
				words[i] = r.Uint32()
				switch v := math.Abs(float64(x[i])) * factor; r.IntN(4) {
				case 0: // a word at or beside the part
					if v < 6 {
						words[i] = uint32(v*0x1p33) + uint32(r.IntN(3)) - 1
					}
				case 1:
					if v >= 2 && v < 6 {
						words[i] = uint32(uint64(math.Mod(v, 2)*0x1p32)>>r.IntN(2)) + uint32(r.IntN(3)) - 1
					}
				case 2:
					words[i] = []uint32{0, 1, math.MaxUint32}[r.IntN(3)]
				}
				want[i/2] |= code(x[i], factor, words[i]) << (i % 2 * 4)
			}
			got := make([]byte, n/2+1)
			got[n/2] = 0xa5
			fp8.EncodeE2M1AtRandom(got, x, scales, words, &factors)
			require.Equal(t, append(want, 0xa5), got, "%d elements", n)
		}
	})
	assert.Panics(t, func() {
		fp8.EncodeE2M1AtRandom(make([]byte, 8), make([]float32, 16), []byte{0}, make([]uint32, 15), &factors)
	})
}

func TestRowsOfSixteenAreTurned(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for cols := range 70 {
			srcPitch, dstPitch := cols+r.IntN(3), 16+r.IntN(3)
			src, want := make([]float32, 15*srcPitch+cols), make([]float32, max(cols, 1)*dstPitch)
			for i := range src {
				src[i] = r.Float32()
			}
			for row := range 16 {
				for c := range cols {
					want[c*dstPitch+row] = src[row*srcPitch+c]
				}
			}
			got := make([]float32, len(want))
			fp8.TurnRows(got, dstPitch, src, srcPitch, cols)
			require.Equal(t, want, got, "%d columns", cols)
		}
	})
	assert.Panics(t, func() { fp8.TurnRows(make([]float32, 16), 16, make([]float32, 15), 1, 1) })
}

func TestCodesOfE2M1DownColumns(t *testing.T) {
	limits := limitsOfScales()
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for n := range 70 {
			pitch := n + r.IntN(3)
			x, scales := make([]float32, 15*pitch+n), make([]byte, n)
			var want []byte
			for j := range scales {
				var column [16]float32
				scales[j] = byte(r.IntN(128))
				want = append(want, block(r, column[:], scales[j])...)
				for i, v := range column {
					x[i*pitch+j] = v
				}
			}
			got := make([]byte, 8*n+1)
			got[8*n] = 0xa5
			fp8.EncodeE2M1Down(got, x, pitch, scales, limits)
			require.Equal(t, append(want, 0xa5), got, "%d columns", n)
		}
	})
	assert.Panics(t, func() { fp8.EncodeE2M1Down(make([]byte, 7), make([]float32, 16), 1, []byte{0}, limits) })
	assert.Panics(t, func() { fp8.EncodeE2M1Down(make([]byte, 8), make([]float32, 15), 1, []byte{0}, limits) })
}

func TestCodesOfE2M1DownColumnsFromBF16(t *testing.T) {
	limits, words := limitsOfScales(), wordsOfScales(t)
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for n := range 140 {
			pitch, nan := n+r.IntN(3), n // where the first column with one may be
			if n%3 == 0 {
				nan /= 2
			}
			x, bits, scales := make([]float32, 15*pitch+n), make([]uint16, 15*pitch+n), make([]byte, n)
			for j := range scales {
				var column [16]float32
				scales[j] = byte(r.IntN(128))
				block(r, column[:], scales[j])
				for i, v := range column {
					b := tensor.ToBFloat16(v)
					if v != v && j < nan {
						b = tensor.ToBFloat16(float32(math.Inf(-1)))
					}
					x[i*pitch+j], bits[i*pitch+j] = b.Float32(), uint16(b)
				}
			}
			want, got := make([]byte, 8*n), make([]byte, 8*n+1)
			got[8*n] = 0xa5
			fp8.EncodeE2M1Down(want, x, pitch, scales, limits)
			done := fp8.EncodeE2M1DownBF16(got, bits, pitch, scales, words)
			require.Equal(t, want[:8*done], got[:8*done], "%d columns", n)
			require.Equal(t, byte(0xa5), got[8*n])
			if cpufeat.Has(cpufeat.AVX512) && nan == n {
				require.Equal(t, n&^31, done, "what has no NaN is done")
			}
		}
	})
}

func TestCodesOfScalesOfE2M1(t *testing.T) {
	for _, factor := range []float32{1, 0.37, 1e30, 3e-37} {
		s := fp8.E2M1Scales{Factor: factor}
		for c := range s.Least {
			s.Least[c] = float32(math.Inf(1))
		}
		for c := range 126 { // as ties do that go to the larger code
			lo, hi := tensor.Float8E4M3(c).Float32(), tensor.Float8E4M3(c+1).Float32()
			s.Least[c] = float32((float64(lo) + float64(hi)) / 2 / float64(factor))
		}
		kerneltest.EachFeature(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for n := range 70 {
				amax, want := make([]float32, n), make([]byte, n)
				for i := range amax {
					switch c := r.IntN(126); r.IntN(4) {
					case 0:
						amax[i] = s.Least[c]
					case 1:
						amax[i] = math.Nextafter32(s.Least[c], 0)
					case 2:
						amax[i] = min(float32(math.Exp(20*r.NormFloat64()))/factor, math.MaxFloat32)
					default:
						amax[i] = []float32{0, 1e-45, 1e-39, math.MaxFloat32, float32(math.Inf(1)), 448 / factor, 0x1p-6 / factor}[r.IntN(7)]
					}
					for want[i] < 126 && amax[i] >= s.Least[want[i]] {
						want[i]++
					}
				}
				got := make([]byte, n+1)
				got[n] = 0xa5
				s.Encode(got, amax)
				require.Equal(t, append(want, 0xa5), got, "%v", amax)
			}
		})
	}
}

func TestAmaxesOfBlocksOfE2M1(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for blocks := range 70 {
			x, want := make([]float32, 16*blocks), make([]float32, blocks)
			for i := range x {
				x[i] = float32(r.NormFloat64())
				switch r.IntN(12) {
				case 0:
					x[i] = float32(math.NaN())
				case 1:
					x[i] = math.Float32frombits(r.Uint32())
				}
				if a := max(x[i], -x[i]); a > want[i/16] {
					want[i/16] = a
				}
			}
			got := make([]float32, blocks)
			fp8.Amaxes(got, x, 16)
			require.Equal(t, want, got)
		}
	})
}

func TestNumbersOfE2M1(t *testing.T) {
	var values [256]fp8.E2M1Values
	for s := range values {
		for code := range values[s] {
			values[s][code] = float32(100*s + code)
		}
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for n := 0; n <= 70; n += 2 {
			src, scales := make([]byte, n/2), make([]byte, (n+15)/16)
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			for i := range scales {
				scales[i] = byte(r.Uint32())
			}
			got := make([]float32, n)
			fp8.DecodeE2M1(got, src, scales, &values)
			for i, v := range got {
				require.Equal(t, float32(100*int(scales[i/16])+int(src[i/2]>>(i%2*4)&15)), v, "element %d of %d", i, n)
			}
		}
	})
	assert.Panics(t, func() { fp8.DecodeE2M1(make([]float32, 16), make([]byte, 7), []byte{0}, &values) })
}

func TestNumbersOfE2M1DownColumns(t *testing.T) {
	var values [256]fp8.E2M1Values
	for s := range values {
		for code := range values[s] {
			values[s][code] = float32(100*s + code)
		}
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for n := range 70 {
			pitch, srcPitch, past := n+r.IntN(3), 8+r.IntN(9), r.IntN(2) == 0
			if past && n%2 == 0 {
				pitch = (pitch + 15) &^ 15
			}
			src, scales, got := make([]byte, srcPitch*(n+1)), make([]byte, n), make([]float32, 15*pitch+n+1)
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			for i := range scales {
				scales[i] = byte(r.Uint32())
			}
			want := make([]float32, len(got))
			for i := range want {
				want[i], got[i] = -1, -1
			}
			for j, s := range scales {
				for i := range 16 {
					want[i*pitch+j] = float32(100*int(s) + int(src[j*srcPitch+i/2]>>(i%2*4)&15))
				}
			}
			fp8.DecodeE2M1Down(got, pitch, src, srcPitch, scales, &values, past)
			require.Equal(t, want, got, "%d columns", n)
		}
	})
	assert.Panics(t, func() { fp8.DecodeE2M1Down(make([]float32, 15), 1, make([]byte, 8), 8, []byte{0}, &values, false) })
	assert.Panics(t, func() { fp8.DecodeE2M1Down(make([]float32, 16), 1, make([]byte, 7), 8, []byte{0}, &values, false) })
}
