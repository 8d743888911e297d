package fp8_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/tensor"
)

type format struct {
	name  string
	f     *fp8.Format
	value func(byte) float32
	round func(float32) byte
}

var formats = []format{
	{
		"e4m3", &fp8.E4M3,
		func(b byte) float32 { return tensor.Float8E4M3(b).Float32() },
		func(v float32) byte { return byte(tensor.ToFloat8E4M3(saturated(v, 448))) },
	},
	{
		"e5m2", &fp8.E5M2,
		func(b byte) float32 { return tensor.Float8E5M2(b).Float32() },
		func(v float32) byte { return byte(tensor.ToFloat8E5M2(saturated(v, 57344))) },
	},
}

func saturated(v, limit float32) float32 {
	if v != v {
		return v
	}
	return max(-limit, min(v, limit))
}

// numbers are ties, their neighbours, every pattern, random bits and what is not finite.
func numbers(f format) []float32 {
	values := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, 1e-45, 464, 465, -61440, -65536}
	for b := range 255 {
		lo, hi := f.value(byte(b)), f.value(byte(b+1))
		tie := lo + (hi-lo)/2
		values = append(values, lo, tie, math.Nextafter32(tie, lo), math.Nextafter32(tie, hi))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		values = append(values, math.Float32frombits(r.Uint32()), float32(r.NormFloat64()))
	}
	return values
}

func TestEncodeRoundsAsTensorsDo(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			values := numbers(f)
			ones := make([]float32, len(values))
			for i := range ones {
				ones[i] = 1
			}
			kerneltest.EachFeature(t, func(t *testing.T) {
				got, each := make([]byte, len(values)), make([]byte, len(values))
				f.f.Encode(got, values, ones, len(values))
				f.f.EncodeEach(each, values, ones)
				for i, v := range values {
					require.Equal(t, f.round(v), got[i], "%v", v)
				}
				require.Equal(t, got, each)
			})
		})
	}
}

func TestDecodeHasEveryPattern(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			all := make([]byte, 256)
			for i := range all {
				all[i] = byte(i)
			}
			kerneltest.EachFeature(t, func(t *testing.T) {
				got, each, halves := make([]float32, len(all)), make([]float32, len(all)-1), make([]float32, len(all))
				for i := range halves {
					halves[i] = 0.5
				}
				f.f.Decode(got, all, halves, len(all))
				f.f.DecodeEach(each, all[:255], halves)
				for i, v := range each {
					require.Equal(t, v == v, got[i] == got[i], "%#02x", i)
					require.True(t, v != v || math.Float32bits(v) == math.Float32bits(got[i]), "%#02x", i)
				}
				for i, b := range all {
					want := f.value(b) * 0.5
					if want != want {
						require.True(t, got[i] != got[i], "%#02x", b)
						continue
					}
					require.Equal(t, math.Float32bits(want), math.Float32bits(got[i]), "%#02x", b)
				}
			})
		})
	}
}

func TestBlocksHaveTheirScalesAndStayWithinTheirSlices(t *testing.T) {
	const guard = 0xa5
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, block := range []int{1, 3, 16, 17, 32, 40, 128, 300} {
			for _, n := range []int{0, 1, 15, 16, 31, 32, 33, 65, 128, 129, 300, 401} {
				blocks := (n + block - 1) / block
				x, scale := make([]float32, n), make([]float32, blocks)
				for i := range x {
					x[i] = float32(r.NormFloat64())
				}
				for i := range scale {
					scale[i] = float32(i + 1)
				}
				if n > 20 {
					x[20] = float32(math.NaN())
				}
				amax := make([]float32, blocks+1)
				amax[blocks] = guard
				fp8.Amaxes(amax[:blocks], x, block)
				assert.EqualValues(t, guard, amax[blocks])
				raised := make([]float32, n)
				fp8.Raise(raised, x)
				for _, f := range formats {
					data := make([]byte, n+1)
					data[n] = guard
					f.f.Encode(data[:n], x, scale, block)
					back := make([]float32, n+1)
					back[n] = guard
					f.f.Decode(back[:n], data[:n], scale, block)
					require.EqualValues(t, guard, data[n])
					require.EqualValues(t, guard, back[n])
					want := make([]float32, blocks)
					for i, v := range x {
						s := scale[i/block]
						require.Equal(t, f.round(v*s), data[i], "element %d of %d in blocks of %d", i, n, block)
						if v != v {
							require.True(t, back[i] != back[i])
							continue
						}
						require.Equal(t, f.value(data[i])*s, back[i], "element %d of %d in blocks of %d", i, n, block)
						want[i/block] = max(want[i/block], v, -v)
						require.Equal(t, max(v, -v), raised[i])
					}
					require.Equal(t, want, amax[:blocks], "%d in blocks of %d", n, block)
				}
			}
		}
	})
	assert.Zero(t, fp8.Amax(nil))
	assert.Panics(t, func() { fp8.E4M3.Encode(make([]byte, 3), make([]float32, 4), []float32{1}, 4) })
	assert.Panics(t, func() { fp8.E4M3.Encode(make([]byte, 4), make([]float32, 4), nil, 4) })
	assert.Panics(t, func() { fp8.E4M3.Decode(make([]float32, 3), make([]byte, 4), []float32{1}, 4) })
}

func BenchmarkEncode(b *testing.B) {
	x, data, scale := make([]float32, 4096), make([]byte, 4096), make([]float32, 128)
	for i := range x {
		x[i] = float32(i) * 0.01
	}
	run := func(name string, do func()) {
		b.Run(name, func(b *testing.B) {
			kerneltest.EachFeature(b, func(b *testing.B) {
				b.SetBytes(5 * 4096)
				for b.Loop() {
					do()
				}
			})
		})
	}
	run("encode", func() { fp8.E4M3.Encode(data, x, scale, 32) })
	run("amaxes", func() { fp8.Amaxes(scale, x, 32) })
	run("decode", func() { fp8.E4M3.Decode(x, data, scale, 32) })
}

func TestTranspose(t *testing.T) {
	const guard = 0xa5
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, rows := range []int{0, 1, 7, 8, 9, 16, 33, 64, 65, 72, 140, 601} {
			for _, cols := range []int{0, 1, 15, 16, 17, 40, 130} {
				src, dst := make([]byte, rows*(cols+3)), make([]byte, cols*(rows+5)+1)
				for i := range src {
					src[i] = byte(r.Uint32())
				}
				for i := range dst {
					dst[i] = guard
				}
				fp8.Transpose(dst, rows+5, src, cols+3, rows, cols)
				want := slices.Repeat([]byte{guard}, len(dst))
				for c := range cols {
					for row := range rows {
						want[c*(rows+5)+row] = src[row*(cols+3)+c]
					}
				}
				require.True(t, slices.Equal(want, dst), "%d rows of %d", rows, cols)
			}
		}
	})
	assert.Panics(t, func() { fp8.Transpose(make([]byte, 7), 2, make([]byte, 8), 4, 2, 4) })
}

func BenchmarkTranspose(b *testing.B) {
	const rows, cols = 2048, 4096
	src, dst := make([]byte, rows*cols), make([]byte, rows*cols)
	kerneltest.EachFeature(b, func(b *testing.B) {
		b.SetBytes(2 * rows * cols)
		for b.Loop() {
			fp8.Transpose(dst, rows, src, cols, rows, cols)
		}
	})
}

func TestTransposeToMemoryIsTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	kerneltest.EachFeature(t, func(t *testing.T) {
		for _, size := range [][2]int{{0, 3}, {64, 64}, {128, 192}, {640, 130}, {70, 64}, {7, 9}} {
			rows, cols := size[0], size[1]
			for skip := range 2 {
				src, memory := make([]byte, rows*cols), make([]byte, rows*cols+128)
				for i := range src {
					src[i] = byte(r.Uint32())
				}
				aligned := int(-uintptr(unsafe.Pointer(&memory[0])) % 64)
				want, got := make([]byte, rows*cols), memory[aligned+skip:][:rows*cols]
				fp8.Transpose(want, rows, src, cols, rows, cols)
				fp8.TransposeToMemory(got, rows, src, cols, rows, cols)
				require.True(t, slices.Equal(want, got), "%d rows of %d, %d bytes from a line", rows, cols, skip)
			}
		}
	})
}
