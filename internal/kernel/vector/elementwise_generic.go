package vector

import "math"

func axpyGeneric(a float32, x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += a * v
	}
}

func scaleGeneric(a float32, dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = a * v
	}
}

func addGeneric(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v + y[i]
	}
}

func mulGeneric(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v * y[i]
	}
}

func mulSubGeneric(dst, x, y []float32, c float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v * (y[i] - c)
	}
}

func clampGeneric(dst, x []float32, lo, hi float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = min(max(v, lo), hi)
	}
}

func keepGeneric(dst, y, x []float32, lo, hi float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		if v < lo || v > hi {
			dst[i] = 0
		} else {
			dst[i] = y[i]
		}
	}
}

func mulScaleGeneric(dst, x, w []float32, scale float32) {
	x, w = x[:len(dst)], w[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * scale * w[i]
	}
}

const (
	exponentMask = 0x7f800000
	exponentUnit = 0x00800000
)

// scaleFiniteGeneric records in the sign bit of bad whether an exponent was all ones.
func scaleFiniteGeneric(dst, x []float32, scale float32) bool {
	x = x[:len(dst)]
	bad := uint32(0)
	for i := range dst {
		f := x[i]
		dst[i] = f * scale
		bad |= math.Float32bits(f)&exponentMask + exponentUnit
	}
	return bad>>31 == 0
}
