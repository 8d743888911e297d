package vector

import "github.com/primus-fl/primus/internal/race"

// Axpy adds a multiple of x to y:
//
//	y[i] += a·x[i]
//
// for every element of x. The product may or may not be rounded before the sum.
func Axpy(a float32, x, y []float32) {
	y = y[:len(x)]
	race.Read(x)
	race.Write(y)
	axpy(a, x, y)
}

// Scale stores a multiple of x:
//
//	dst[i] = a·x[i]
//
// for every element of x. dst may be x.
func Scale(a float32, dst, x []float32) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Write(dst)
	scale(a, dst, x)
}

// Add stores a sum:
//
//	dst[i] = x[i] + y[i]
//
// for every element of x. dst may be x or y.
func Add(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	race.Read(x)
	race.Read(y)
	race.Write(dst)
	add(dst, x, y)
}

// Mul stores a product:
//
//	dst[i] = x[i] · y[i]
//
// for every element of x. dst may be x or y.
func Mul(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	race.Read(x)
	race.Read(y)
	race.Write(dst)
	mul(dst, x, y)
}

// MulSub stores the product of a vector and another one minus a constant:
//
//	dst[i] = x[i] · (y[i] − c)
//
// for every element of x. dst may be x or y.
func MulSub(dst, x, y []float32, c float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	race.Read(x)
	race.Read(y)
	race.Write(dst)
	mulSub(dst, x, y, c)
}

// Clamp stores numbers within bounds:
//
//	dst[i] = min(max(x[i], lo), hi)
//
// for every element of x. A NaN of x stays NaN. dst may be x. lo <= hi, either of
// which may be infinite.
func Clamp(dst, x []float32, lo, hi float32) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Write(dst)
	clamp(dst, x, lo, hi)
}

// Keep stores y where x lies within bounds:
//
//	dst[i] = 0 where x[i] < lo or x[i] > hi, y[i] elsewhere
//
// for every element of x; where x is NaN, y is stored. dst may be x or y.
func Keep(dst, y, x []float32, lo, hi float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	race.Read(x)
	race.Read(y)
	race.Write(dst)
	keep(dst, y, x, lo, hi)
}

// MulScale stores a multiple of a product:
//
//	dst[i] = (x[i] · scale) · w[i]
//
// for every element of x. dst may be x or w.
func MulScale(dst, x, w []float32, scale float32) {
	dst, w = dst[:len(x)], w[:len(x)]
	race.Read(x)
	race.Read(w)
	race.Write(dst)
	done := mulScaleVector(dst, x, w, scale)
	mulScaleGeneric(dst[done:], x[done:], w[done:], scale)
}

// ScaleFinite stores a multiple of x and reports whether every element of x is finite:
//
//	dst[i] = x[i] · scale
//
// for every element of x. dst may be x.
func ScaleFinite(dst, x []float32, scale float32) (finite bool) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Write(dst)
	done, finite := scaleFiniteVector(dst, x, scale)
	return scaleFiniteGeneric(dst[done:], x[done:], scale) && finite
}
