//go:build amd64 && !noasm

package rope

import (
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel/internal/lanes"
)

func rotateHalvesVector(t Turns, y0, y1 []float32, y Pitch, x0, x1 []float32, x Pitch, c0, c1, s0, s1 []float32) int {
	wide, n := cpufeat.Has(cpufeat.AVX512), t.Columns
	if !wide {
		n = lanes.Whole(n)
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
	n := lanes.Whole(len(y))
	if n > 0 {
		rotatePairsAVX2(&y[0], &x[0], &c[0], &s[0], n)
	}
	return n
}

func sinCosVector(sin, cos, theta []float32) int {
	n := lanes.Whole(len(theta))
	switch {
	case n == 0:
	case cpufeat.Has(cpufeat.AVX512):
		n = sinCosAVX512(&sin[0], &cos[0], &theta[0], n)
	case reducible(theta[:n]):
		n = sinCosAVX2(&sin[0], &cos[0], &theta[0], n)
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

// The assembly computes what the plain Go functions of the same name do. Functions take n > 0, a
// multiple of 8, unless they say otherwise.

//go:noescape
func rotateHalvesAVX2(y0, y1 *float32, yPitch int, x0, x1 *float32, xPitch, heads int, c0, c1, s0, s1 *float32, n int)

// rotateHalvesAVX512 takes any n > 0.
//
//go:noescape
func rotateHalvesAVX512(y0, y1 *float32, yPitch int, x0, x1 *float32, xPitch, heads int, c0, c1, s0, s1 *float32, n int)

//go:noescape
func rotatePairsAVX2(y, x, c, s *float32, n int)

// sinCosAVX2 takes angles below maxReduced and returns n.
//
//go:noescape
func sinCosAVX2(sin, cos, theta *float32, n int) (done int)

// sinCosAVX512 stops before a vector with an angle that is not below maxReduced, and returns how
// many elements it has computed.
//
//go:noescape
func sinCosAVX512(sin, cos, theta *float32, n int) (done int)
