package layers

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// SinCos computes the sine and cosine of angles in radians:
//
//	sin[i], cos[i] = sin θ[i], cos θ[i]
//
// Arithmetic is f64 and results are within one unit in the last place of f32 for
// every finite angle; NaN and ±Inf give NaN. sin may be θ.
func SinCos(sin, cos, theta []float32) {
	n := len(theta)
	sin, cos = sin[:n], cos[:n]
	race.Read(theta)
	race.Write(sin)
	race.Write(cos)
	done := sinCosVector(sin, cos, theta)
	sinCosGo(sin[done:], cos[done:], theta[done:])
}

// maxReduced bounds the angles that are reduced by subtracting multiples of π/2 in two parts;
// larger ones, which no position reaches, use math.Sincos.
const maxReduced = 1 << 20

const (
	// roundShift added to a float64 drops its fraction, so that the sum holds the rounded integer
	// in its lowest bits.
	roundShift = 3 << 51

	// halfPiHigh has 33 bits, so that its product with up to 2²⁰ turns is exact.
	halfPiHigh = 0x1.921fb544p+0
	halfPiLow  = math.Pi/2 - halfPiHigh
)

// sinCosGo reduces each angle to a quadrant and a rest in [-π/4, π/4], where the Taylor series to
// r⁹ and r¹⁰ are exact to 3e-9.
func sinCosGo(sin, cos, theta []float32) {
	sin, cos = sin[:len(theta)], cos[:len(theta)]
	for i, t := range theta {
		if !(t > -maxReduced && t < maxReduced) {
			s, c := math.Sincos(float64(t))
			sin[i], cos[i] = float32(s), float32(c)
			continue
		}
		x := float64(t)
		shifted := x*(2/math.Pi) + roundShift
		turns := shifted - roundShift
		quadrant := math.Float64bits(shifted)
		r := x - turns*halfPiHigh - turns*halfPiLow
		z := r * r
		s := r + r*z*(-1./6+z*(1./120+z*(-1./5040+z*(1./362880))))
		c := 1 + z*(-1./2+z*(1./24+z*(-1./720+z*(1./40320+z*(-1./3628800)))))
		if quadrant&1 != 0 {
			s, c = c, s
		}
		sin[i] = flip(float32(s), quadrant>>1)
		cos[i] = flip(float32(c), (quadrant+1)>>1)
	}
}

// flip negates f when the lowest bit of odd is set.
func flip(f float32, odd uint64) float32 {
	return math.Float32frombits(math.Float32bits(f) ^ uint32(odd)<<31)
}
