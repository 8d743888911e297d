package fp8_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/tensor"
)

func TestE8M0OfMagnitudes(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			largest := f.f.Largest()
			values := []float32{0, 1e-45, float32(math.Inf(1)), math.MaxFloat32, largest, math.Nextafter32(largest, 1), math.Nextafter32(largest, 1e9)}
			r := rand.New(rand.NewPCG(1, 3))
			for exponent := range 254 {
				power := math.Float32frombits(uint32(exponent) << 23)
				values = append(values, power, power*1.75, math.Nextafter32(power*1.75, math.MaxFloat32), power*(1+r.Float32()))
			}
			for len(values)%16 != 9 {
				values = append(values, 3)
			}
			kerneltest.EachFeature(t, func(t *testing.T) {
				codes, amax := make([]byte, len(values)), append([]float32(nil), values...)
				f.f.EncodeE8M0(codes, amax)
				for i, v := range values {
					want := tensor.CeilFloat8E8M0(float64(v) / float64(largest))
					require.Equal(t, byte(want), codes[i], "%v", v)
					require.Equal(t, 1/want.Float32(), amax[i], "%v", v)
				}
			})
		})
	}
}

func TestNumbersOfE8M0(t *testing.T) {
	codes := make([]byte, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	kerneltest.EachFeature(t, func(t *testing.T) {
		got, reciprocals := make([]float32, 256), make([]float32, 256)
		fp8.DecodeE8M0(got, codes)
		fp8.ReciprocalsE8M0(reciprocals, codes)
		for i := range 255 {
			want := tensor.Float8E8M0(i).Float32()
			require.Equal(t, want, got[i])
			require.Equal(t, 1/want, reciprocals[i])
		}
		assert.True(t, math.IsNaN(float64(got[255])) && math.IsNaN(float64(reciprocals[255])))
		fp8.DecodeE8M0(got[:3], codes[253:])
		assert.Equal(t, float32(0x1p126), got[0])
	})
}
