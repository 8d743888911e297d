package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// format is one narrow type with the functions that the tests need. Patterns are held in 16 bits.
type format struct {
	name             string
	expBits, manBits int
	finite           bool // no infinities, all ones is NaN
	max, minSub      float64
	decode           func(uint16) float32
	fromFloat32      func(float32) uint16
	fromFloat64      func(float64) uint16 // what Set uses
}

func formats() []format {
	set := func(d DType) func(float64) uint16 {
		raw := make([]byte, 2)
		x, err := FromBytes(raw[:d.Size()], d)
		if err != nil {
			panic(err)
		}
		return func(v float64) uint16 {
			x.Set(v)
			if d.Size() == 1 {
				return uint16(raw[0])
			}
			return binary.NativeEndian.Uint16(raw)
		}
	}
	return []format{
		{
			"bf16", 8, 7, false, 0x1.fep127, 0x1p-133,
			func(b uint16) float32 { return BFloat16(b).Float32() },
			func(f float32) uint16 { return uint16(ToBFloat16(f)) }, set(BF16),
		},
		{
			"f16", 5, 10, false, 65504, 0x1p-24,
			func(b uint16) float32 { return Float16(b).Float32() },
			func(f float32) uint16 { return uint16(ToFloat16(f)) }, set(F16),
		},
		{
			"f8e4m3", 4, 3, true, 448, 0x1p-9,
			func(b uint16) float32 { return Float8E4M3(b).Float32() },
			func(f float32) uint16 { return uint16(ToFloat8E4M3(f)) }, set(F8E4M3),
		},
		{
			"f8e5m2", 5, 2, false, 57344, 0x1p-16,
			func(b uint16) float32 { return Float8E5M2(b).Float32() },
			func(f float32) uint16 { return uint16(ToFloat8E5M2(f)) }, set(F8E5M2),
		},
	}
}

func (f format) sign() uint16 { return 1 << (f.expBits + f.manBits) }

func (f format) overflow() uint16 {
	if f.finite {
		return f.sign() - 1
	}
	return (1<<f.expBits - 1) << f.manBits
}

// value decodes a pattern through the hexadecimal text form of a float.
func (f format) value(t *testing.T, bits uint16) float64 {
	t.Helper()
	exp := int(bits&(f.sign()-1)) >> f.manBits
	man := int(bits) & (1<<f.manBits - 1)
	top := 1<<f.expBits - 1
	sign := "+"
	if bits&f.sign() != 0 {
		sign = "-"
	}
	switch {
	case exp == top && !f.finite && man != 0, exp == top && f.finite && man == 1<<f.manBits-1:
		return math.NaN()
	case exp == top && !f.finite:
		v, err := strconv.ParseFloat(sign+"Inf", 64)
		require.NoError(t, err)
		return v
	}
	lead := 1
	if exp == 0 {
		lead, exp = 0, 1
	}
	// The fraction in hexadecimal, padded on the right to 16 bits.
	text := fmt.Sprintf("%s0x%d.%04xp%d", sign, lead, man<<(16-f.manBits), exp-(1<<(f.expBits-1)-1))
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err, text)
	return v
}

// values returns the non-negative values in the order of their patterns. The last one is the value
// that would follow if the exponent could grow further: a number that rounds to it overflows.
func (f format) values(t *testing.T) []float64 {
	t.Helper()
	n := int(f.overflow())
	values := make([]float64, n+1)
	for i := range n {
		values[i] = f.value(t, uint16(i))
	}
	values[n] = 2*values[n-1] - values[n-2]
	return values
}

// nearest rounds v by searching the values for its neighbours.
func (f format) nearest(values []float64, v float64) uint16 {
	sign := uint16(0)
	if math.Signbit(v) {
		sign, v = f.sign(), -v
	}
	hi := sort.SearchFloat64s(values, v)
	switch {
	case hi == len(values):
		return sign | f.overflow()
	case hi == 0 || values[hi] == v:
		return sign | uint16(hi)
	}
	middle := (values[hi-1] + values[hi]) / 2
	if v > middle || v == middle && hi%2 == 0 {
		return sign | uint16(hi)
	}
	return sign | uint16(hi-1)
}

func TestDecodeEveryPattern(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			nans, largest, smallest := 0, 0.0, math.Inf(1)
			for i := range 2 * int(f.sign()) {
				bits := uint16(i)
				want, got := f.value(t, bits), f.decode(bits)
				if math.IsNaN(want) {
					nans++
					require.True(t, math.IsNaN(float64(got)), "%#x: got %v", bits, got)
					require.True(t, math.IsNaN(float64(f.decode(f.fromFloat32(got)))), "%#x: NaN must stay NaN", bits)
					require.Equal(t, bits&f.sign(), f.fromFloat32(got)&f.sign(), "%#x: sign of NaN", bits)
					continue
				}
				require.Equal(t, math.Float64bits(want), math.Float64bits(float64(got)), "%#x: got %v, want %v", bits, got, want)
				require.Equal(t, bits, f.fromFloat32(got), "%v", got)
				require.Equal(t, bits, f.fromFloat64(want), "%v", want)
				if v := math.Abs(want); v != 0 && !math.IsInf(v, 0) {
					largest, smallest = max(largest, v), min(smallest, v)
				}
			}
			wantNaNs := 2 * (1<<f.manBits - 1)
			if f.finite {
				wantNaNs = 2
			}
			assert.Equal(t, wantNaNs, nans)
			assert.Equal(t, f.max, largest)
			assert.Equal(t, f.minSub, smallest)
		})
	}
}

// Between every pair of neighbours: the middle, a tie, and the closest floats to either side of it.
func TestEncodeBetweenNeighbours(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			values := f.values(t)
			for i := range len(values) - 1 {
				lower, upper := uint16(i), uint16(i+1)
				even := lower
				if i%2 == 1 {
					even = upper
				}
				middle := (values[i] + values[i+1]) / 2
				for _, sign := range []float64{1, -1} {
					bit := uint16(0)
					if sign < 0 {
						bit = f.sign()
					}
					require.Equal(t, bit|even, f.fromFloat64(sign*middle), "tie %v", sign*middle)
					require.Equal(t, bit|lower, f.fromFloat64(sign*math.Nextafter(middle, 0)), "below the tie %v", sign*middle)
					require.Equal(t, bit|upper, f.fromFloat64(sign*math.Nextafter(middle, math.Inf(1))), "above the tie %v", sign*middle)

					tie := float32(sign * middle)
					if float64(tie) != sign*middle {
						continue // beyond what a float32 holds
					}
					require.Equal(t, bit|even, f.fromFloat32(tie), "tie %v", tie)
					require.Equal(t, bit|lower, f.fromFloat32(math.Nextafter32(tie, 0)), "below the tie %v", tie)
					require.Equal(t, bit|upper, f.fromFloat32(math.Nextafter32(tie, float32(math.Copysign(math.MaxFloat32, sign)))), "above the tie %v", tie)
				}
			}
		})
	}
}

func TestEncodeExtremes(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			inf := math.Inf(1)
			assert.Equal(t, f.overflow(), f.fromFloat64(inf))
			assert.Equal(t, f.sign()|f.overflow(), f.fromFloat64(-inf))
			assert.Equal(t, f.overflow(), f.fromFloat64(math.MaxFloat64))
			assert.Equal(t, f.overflow(), f.fromFloat32(float32(inf)))
			assert.Equal(t, f.overflow(), f.fromFloat32(math.MaxFloat32))
			assert.Equal(t, f.sign()|f.overflow(), f.fromFloat32(-math.MaxFloat32))
			assert.Equal(t, uint16(0), f.fromFloat64(math.SmallestNonzeroFloat64))
			assert.Equal(t, f.sign(), f.fromFloat64(-math.SmallestNonzeroFloat64), "a negative value keeps its sign")
			assert.Equal(t, uint16(0), f.fromFloat64(0))
			assert.Equal(t, f.sign(), f.fromFloat64(math.Copysign(0, -1)))
			assert.Equal(t, f.sign(), f.fromFloat32(float32(math.Copysign(0, -1))))
			for _, nan := range []uint32{0x7fc00000, 0x7f800001, 0x7fffffff, 0xffc00000, 0xff800001, 0xffffffff} {
				got := f.fromFloat32(math.Float32frombits(nan))
				assert.True(t, math.IsNaN(float64(f.decode(got))), "%#x became %#x", nan, got)
				assert.Equal(t, nan>>31 == 1, got&f.sign() != 0, "sign of %#x", nan)
				assert.NotZero(t, got>>(f.manBits-1)&1, "%#x became the signalling %#x", nan, got)
			}
		})
	}
}

func TestEncodeRandom(t *testing.T) {
	t.Parallel()
	const draws = 1 << 20
	for seed, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			values := f.values(t)
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			// Half of the draws are any float32, half lie in the range of the format.
			lowest, highest := math.Log2(f.minSub)-2, math.Log2(f.max)+1
			for i := range draws {
				v := math.Float32frombits(rng.Uint32())
				if i%2 == 0 {
					v = float32(math.Exp2(lowest + rng.Float64()*(highest-lowest)))
					v = float32(math.Copysign(float64(v), rng.Float64()-0.5))
				}
				if v != v {
					continue
				}
				want := f.nearest(values, float64(v))
				if got := f.fromFloat32(v); got != want {
					require.Equal(t, want, got, "%v (%#x)", v, math.Float32bits(v))
				}
				if got := f.fromFloat64(float64(v)); got != want {
					require.Equal(t, want, got, "%v as a float64", v)
				}
			}
		})
	}
}

// A value between a tie and the closest float32 to it must not be rounded to
// float32 first: that would make it the tie.
func TestSetRoundsOnce(t *testing.T) {
	t.Parallel()
	x, err := FromSlice(make([]BFloat16, 1))
	require.NoError(t, err)
	v := 1 + 0x1p-8 + 0x1p-40
	require.Equal(t, float32(1+0x1p-8), float32(v), "the float32 is a tie")
	x.Set(v, 0)
	assert.Equal(t, 1+0x1p-7, x.At(0))
}
