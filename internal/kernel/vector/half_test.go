package vector_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
)

type conversion struct {
	name    string
	widen   func([]float32, []uint16)
	narrow  func([]uint16, []float32)
	value   func(uint16) float32
	rounded func(float32) uint16
}

var conversions = []conversion{
	{
		"bf16", vector.WidenBF16, vector.NarrowBF16,
		func(b uint16) float32 { return tensor.BFloat16(b).Float32() },
		func(f float32) uint16 { return uint16(tensor.ToBFloat16(f)) },
	},
	{
		"f16", vector.WidenF16, vector.NarrowF16,
		func(b uint16) float32 { return tensor.Float16(b).Float32() },
		func(f float32) uint16 { return uint16(tensor.ToFloat16(f)) },
	},
}

func (c conversion) nan(b uint16) bool { return math.IsNaN(float64(c.value(b))) }

func TestEveryPatternWidens(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	for _, c := range conversions {
		t.Run(c.name, func(t *testing.T) {
			kerneltest.EachFeature(t, func(t *testing.T) {
				wide, back := make([]float32, len(all)), make([]uint16, len(all))
				c.widen(wide, all)
				c.narrow(back, wide)
				for i, b := range all {
					want := c.value(b)
					if want != want {
						if wide[i] == wide[i] || !c.nan(back[i]) || b>>15 != back[i]>>15 {
							t.Fatalf("%#04x is NaN: got %v and back %#04x", b, wide[i], back[i])
						}
					} else if math.Float32bits(want) != math.Float32bits(wide[i]) || b != back[i] {
						t.Fatalf("%#04x is %v: got %v and back %#04x", b, want, wide[i], back[i])
					}
				}
			})
		})
	}
}

func TestNarrowRoundsToNearestEven(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	var values []float32
	for range 20000 {
		values = append(values, math.Float32frombits(r.Uint32()))
	}
	for b := range 1 << 16 { // each number of either format, the tie after it, and the neighbours of the tie
		for _, u := range []uint32{
			uint32(b) << 16, uint32(b)<<16 | 0x7fff, uint32(b)<<16 | 0x8000, uint32(b)<<16 | 0x8001,
			math.Float32bits(tensor.Float16(b).Float32()) | 0xfff, math.Float32bits(tensor.Float16(b).Float32()) | 0x1000,
			math.Float32bits(tensor.Float16(b).Float32()) | 0x1001,
		} {
			values = append(values, math.Float32frombits(u))
		}
	}
	for q := range 2050 { // halves of the subnormal unit of binary16
		for _, step := range []float32{0.5, 0.4999999, 0.5000001} {
			values = append(values, (float32(q)+step)*0x1p-24, -(float32(q)+step)*0x1p-24)
		}
	}
	values = append(values, 65519.996, 65520, -65520, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), math.SmallestNonzeroFloat32)
	for _, c := range conversions {
		t.Run(c.name, func(t *testing.T) {
			want := make([]uint16, len(values))
			for i, v := range values {
				want[i] = c.rounded(v)
			}
			kerneltest.EachFeature(t, func(t *testing.T) {
				got := make([]uint16, len(values))
				c.narrow(got, values)
				for i, v := range values {
					if v != v && c.nan(got[i]) && got[i]>>15 == want[i]>>15 {
						continue
					}
					if got[i] != want[i] {
						t.Fatalf("%v, %#08x: got %#04x, want %#04x", v, math.Float32bits(v), got[i], want[i])
					}
				}
			})
		})
	}
}

func TestConversionsKeepToTheirSlices(t *testing.T) {
	const guard16 = 0xabcd
	for _, c := range conversions {
		t.Run(c.name, func(t *testing.T) {
			kerneltest.EachFeature(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(4, 5))
				kerneltest.EachShape(func(n, offset int) {
					block := make([]uint16, kerneltest.Margin+offset+n+kerneltest.Margin)
					for i := range block {
						block[i] = guard16
					}
					narrow := block[kerneltest.Margin+offset:][:n]
					from := kerneltest.NewOperand(r, (offset*5+2)%16, n)
					c.narrow(narrow, from.Data)
					wide := kerneltest.NewOperand(r, (offset*7+3)%16, n)
					c.widen(wide.Data, narrow)
					wide.RequireGuards(t)
					for i, b := range block {
						if (i < kerneltest.Margin+offset || i >= kerneltest.Margin+offset+n) && b != guard16 {
							t.Fatalf("element %d beside %d elements was overwritten", i-kerneltest.Margin-offset, n)
						}
					}
					for i, v := range from.Data {
						if want := c.value(c.rounded(v)); want != wide.Data[i] {
							t.Fatalf("element %d of %d: got %v, want %v", i, n, wide.Data[i], want)
						}
					}
				})
			})
		})
	}
	assert.Panics(t, func() { vector.WidenBF16(make([]float32, 3), make([]uint16, 4)) })
	assert.Panics(t, func() { vector.NarrowF16(make([]uint16, 3), make([]float32, 4)) })
}
