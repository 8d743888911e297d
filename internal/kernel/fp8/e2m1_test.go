package fp8_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/cpufeat/cpufeattest"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/tensor"
)

// limitsOfOne are those of a scale of 1, with which ties go to even codes.
var limitsOfOne = fp8.E2M1Limits{0, math.Nextafter32(0.25, 1), 0.75, math.Nextafter32(1.25, 2), 1.75, math.Nextafter32(2.5, 3), 3.5, math.Nextafter32(5, 6)}

func TestCodesOfE2M1(t *testing.T) {
	var limits [128]fp8.E2M1Limits
	for s := range limits {
		for k, v := range limitsOfOne {
			limits[s][k] = v * float32(math.Exp2(float64(s-60)))
		}
	}
	specials := []float32{0, float32(math.Copysign(0, -1)), 0.25, -0.75, 1.25, -1.75, 2.5, -3.5, 5, -6, 1e30, float32(math.NaN()), float32(-math.NaN()), float32(math.Inf(-1)), 1e-45}
	cpufeattest.Each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for n := 0; n <= 70; n += 2 {
			x, scales := make([]float32, n), make([]byte, (n+15)/16)
			for i := range scales {
				scales[i] = byte(r.IntN(128))
			}
			for i := range x {
				x[i] = float32(r.NormFloat64() * 3)
				if r.IntN(3) == 0 {
					x[i] = specials[r.IntN(len(specials))]
				}
				x[i] *= float32(math.Exp2(float64(int(scales[i/16]) - 60)))
			}
			got := make([]byte, n/2+1)
			got[n/2] = 0xa5
			fp8.EncodeE2M1(got, x, scales, &limits)
			for i, v := range x {
				want := tensor.ToFloat4E2M1(float64(v) * math.Exp2(60-float64(scales[i/16])))
				require.Equal(t, byte(want), got[i/2]>>(i%2*4)&15, "%v, element %d of %d", v, i, n)
			}
			require.Equal(t, byte(0xa5), got[n/2])
		}
	})
	assert.Panics(t, func() { fp8.EncodeE2M1(make([]byte, 7), make([]float32, 16), []byte{0}, &limits) })
	assert.Panics(t, func() { fp8.EncodeE2M1(make([]byte, 9), make([]float32, 18), []byte{0}, &limits) })
}

func TestNumbersOfE2M1(t *testing.T) {
	var values [256]fp8.E2M1Values
	for s := range values {
		for code := range values[s] {
			values[s][code] = float32(100*s + code)
		}
	}
	cpufeattest.Each(t, func(t *testing.T) {
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
