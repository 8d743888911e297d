package fused

import "math"

// MulScale computes dst[i] = x[i]·scale·w[i], multiplied from the left.
func MulScale(dst, x, w []float32, scale float32) {
	n := len(dst)
	x, w = x[:n], w[:n]
	raceRead(x, w)
	raceWrite(dst)
	done := mulScaleVector(dst, x, w, scale)
	mulScaleGo(dst[done:], x[done:], w[done:], scale)
}

func mulScaleGo(dst, x, w []float32, scale float32) {
	x, w = x[:len(dst)], w[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * scale * w[i]
	}
}

// Scale computes dst[i] = x[i]·scale and reports whether every x[i] is finite.
func Scale(dst, x []float32, scale float32) (finite bool) {
	x = x[:len(dst)]
	raceRead(x)
	raceWrite(dst)
	done, finite := scaleVector(dst, x, scale)
	return scaleGo(dst[done:], x[done:], scale) && finite
}

const (
	exponentMask = 0x7f800000
	exponentUnit = 0x00800000
)

// scaleGo records in the sign bit of bad whether an exponent was all ones.
func scaleGo(dst, x []float32, scale float32) bool {
	x = x[:len(dst)]
	bad := uint32(0)
	for i := range dst {
		f := x[i]
		dst[i] = f * scale
		bad |= math.Float32bits(f)&exponentMask + exponentUnit
	}
	return bad>>31 == 0
}
