//go:build amd64 && !noasm

package fused

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// lanes is the number of float32s in a vector of AVX2.
const lanes = 8

// whole returns how many of n elements the assembly takes: whole vectors, or
// none on a machine without AVX2.
func whole(n int) int {
	if n < lanes || !cpufeat.Has(cpufeat.AVX2) {
		return 0
	}
	return n &^ (lanes - 1)
}

func at(s []float32) *float32 { return unsafe.SliceData(s) }

func mulScaleVector(dst, x, w []float32, scale float32) int {
	n := whole(len(dst))
	if n > 0 {
		mulScaleAVX2(at(dst), at(x), at(w), n, scale)
	}
	return n
}

func scaleVector(dst, x []float32, scale float32) (int, bool) {
	n := whole(len(dst))
	if n == 0 {
		return 0, true
	}
	return n, scaleAVX2(at(dst), at(x), n, scale) == 0
}

func sumSquaresVector(x []float32) (int, float64) {
	n := whole(len(x))
	if n == 0 {
		return 0, 0
	}
	return n, sumSquaresAVX2(at(x), n)
}

func momentsVector(x []float32) (done int, sum, squares float64) {
	if cpufeat.Has(cpufeat.AVX512) {
		done = len(x) &^ (2*lanes - 1)
	} else {
		done = whole(len(x))
	}
	switch {
	case done == 0:
	case cpufeat.Has(cpufeat.AVX512):
		sum, squares = momentsAVX512(at(x), done)
	default:
		sum, squares = momentsAVX2(at(x), done)
	}
	return done, sum, squares
}

func centerVector(y, x, g, b []float32, mu, low, rsigma float32) int {
	switch n := len(y); {
	case n == 0 || !cpufeat.Has(cpufeat.AVX2):
		return 0
	case cpufeat.Has(cpufeat.AVX512):
		centerAVX512(at(y), at(x), at(g), at(b), n, mu, low, rsigma)
	default:
		centerAVX2(at(y), at(x), at(g), at(b), n, mu, low, rsigma)
	}
	return len(y)
}

func normGradVector(a *Gradient) bool {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		normGradAVX512(a)
	case cpufeat.Has(cpufeat.AVX2):
		normGradAVX2(a)
	default:
		return false
	}
	return true
}

func rotateHalvesVector(t Turns, y0, y1 []float32, y Pitch, x0, x1 []float32, x Pitch, c0, c1, s0, s1 []float32) int {
	wide, n := cpufeat.Has(cpufeat.AVX512), t.Columns
	if !wide {
		n = whole(n)
	}
	if n == 0 {
		return 0
	}
	for s := range t.Steps {
		to, from, a := s*y.Step, s*x.Step, s*t.Angles
		if wide {
			rotateHalvesAVX512(&y0[to], &y1[to], y.Head, &x0[from], &x1[from], x.Head, t.Heads, &c0[a], &c1[a], &s0[a], &s1[a], n)
		} else {
			rotateHalvesAVX2(&y0[to], &y1[to], y.Head, &x0[from], &x1[from], x.Head, t.Heads, &c0[a], &c1[a], &s0[a], &s1[a], n)
		}
	}
	return n
}

func rotatePairsVector(y, x, c, s []float32) int {
	n := whole(len(y))
	if n > 0 {
		rotatePairsAVX2(at(y), at(x), at(c), at(s), n)
	}
	return n
}

func sinCosVector(sin, cos, theta []float32) int {
	n := whole(len(theta))
	switch {
	case n == 0:
	case cpufeat.Has(cpufeat.AVX512):
		n = sinCosAVX512(at(sin), at(cos), at(theta), n)
	case reducible(theta[:n]):
		sinCosAVX2(at(sin), at(cos), at(theta), n)
	default:
		n = 0
	}
	return n
}

// reducible reports whether all angles are below maxReduced.
func reducible(theta []float32) bool {
	for _, t := range theta {
		if !(t > -maxReduced && t < maxReduced) {
			return false
		}
	}
	return true
}

func adamVector(p, m, v, g []float32, step *AdamStep) int {
	n := whole(len(p))
	if n > 0 {
		adamAVX2(at(p), at(m), at(v), at(g), n, step)
	}
	return n
}

// The assembly functions compute the same as the plain Go function of the same name. Those for AVX2
// take n > 0 elements, a multiple of lanes; those for AVX-512 take any n.

//go:noescape
func mulScaleAVX2(dst, x, w *float32, n int, scale float32)

// scaleAVX2 returns 0 when every x[i] is finite.
//
//go:noescape
func scaleAVX2(dst, x *float32, n int, scale float32) (bad int32)

//go:noescape
func sumSquaresAVX2(x *float32, n int) (sum float64)

//go:noescape
func momentsAVX2(x *float32, n int) (sum, squares float64)

// momentsAVX512 takes a multiple of 2·lanes.
//
//go:noescape
func momentsAVX512(x *float32, n int) (sum, squares float64)

// centerAVX2, centerAVX512, normGradAVX2 and normGradAVX512 take any n > 0.
//
//go:noescape
func centerAVX2(y, x, gain, bias *float32, n int, mu, low, rsigma float32)

//go:noescape
func centerAVX512(y, x, gain, bias *float32, n int, mu, low, rsigma float32)

//go:noescape
func normGradAVX2(a *Gradient)

//go:noescape
func normGradAVX512(a *Gradient)

//go:noescape
func rotateHalvesAVX2(y0, y1 *float32, yPitch int, x0, x1 *float32, xPitch, heads int, c0, c1, s0, s1 *float32, n int)

//go:noescape
func rotatePairsAVX2(y, x, c, s *float32, n int)

//go:noescape
func sinCosAVX2(sin, cos, theta *float32, n int)

//go:noescape
func adamAVX2(p, m, v, grad *float32, n int, step *AdamStep)

// sinCosAVX512 takes n as the AVX2 functions do. It stops before a vector with an angle that is not
// below maxReduced, and returns how many elements it has computed.
//
//go:noescape
func sinCosAVX512(sin, cos, theta *float32, n int) (done int)

// rotateHalvesAVX512 takes n > 0.
//
//go:noescape
func rotateHalvesAVX512(y0, y1 *float32, yPitch int, x0, x1 *float32, xPitch, heads int, c0, c1, s0, s1 *float32, n int)
