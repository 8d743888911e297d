//go:build amd64 && !noasm

package layers

import (
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel"
)

func rotateHalvesVector(t Turns, y0, y1 []float32, y Pitch, x0, x1 []float32, x Pitch, c0, c1, s0, s1 []float32) int {
	if cpufeat.Has(cpufeat.AVX512) {
		rotateHalvesAVX512(&t, &y, &x, &y0[0], &y1[0], &x0[0], &x1[0], &c0[0], &c1[0], &s0[0], &s1[0])
		return t.Columns
	}
	n := kernel.WholeLanes(t.Columns)
	if n == 0 {
		return 0
	}
	for s := range t.Steps {
		a := s * t.Angles
		for j := range t.Groups {
			to, from := y.at(s, j, 0), x.at(s, j, 0)
			rotateHalvesAVX2(&y0[to], &y1[to], y.Head, &x0[from], &x1[from], x.Head, t.Heads, &c0[a], &c1[a], &s0[a], &s1[a], n)
		}
	}
	return n
}

func copyHeadsVector(t Turns, y []float32, to Pitch, x []float32, from Pitch) bool {
	if !cpufeat.Has(cpufeat.AVX512) {
		return false
	}
	copyHeadsAVX512(&t, &to, &from, &y[0], &x[0])
	return true
}

func rotatePairsVector(y, x, c, s []float32) int {
	n := kernel.WholeLanes(len(y))
	if n > 0 {
		rotatePairsAVX2(&y[0], &x[0], &c[0], &s[0], n)
	}
	return n
}

func sinCosVector(sin, cos, theta []float32) int {
	n := kernel.WholeLanes(len(theta))
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

// rotateHalvesAVX512 is RotateHalves for operands with elements.
//
//go:noescape
func rotateHalvesAVX512(t *Turns, y, x *Pitch, y0, y1, x0, x1, c0, c1, s0, s1 *float32)

// copyHeadsAVX512 is CopyHeads for operands with elements.
//
//go:noescape
func copyHeadsAVX512(t *Turns, y, x *Pitch, to, from *float32)

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
