//go:build amd64 && !noasm

package layers

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel"
)

func momentsVector(x []float32) (done int, sum, squares float64) {
	if cpufeat.Has(cpufeat.AVX512) {
		done = len(x) &^ (2*kernel.Lanes - 1)
	} else {
		done = kernel.WholeLanes(len(x))
	}
	switch {
	case done == 0:
	case cpufeat.Has(cpufeat.AVX512):
		sum, squares = momentsAVX512(unsafe.SliceData(x), done)
	default:
		sum, squares = momentsAVX2(unsafe.SliceData(x), done)
	}
	return done, sum, squares
}

func centerVector(y, x, g, b []float32, mu, low, rsigma float32) int {
	switch n := len(y); {
	case n == 0 || !cpufeat.Has(cpufeat.AVX2):
		return 0
	case cpufeat.Has(cpufeat.AVX512):
		centerAVX512(&y[0], &x[0], &g[0], &b[0], n, mu, low, rsigma)
	default:
		centerAVX2(&y[0], &x[0], &g[0], &b[0], n, mu, low, rsigma)
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

// The assembly computes what the plain Go functions of the same name do.

// momentsAVX2 takes n > 0 elements, a multiple of 8.
//
//go:noescape
func momentsAVX2(x *float32, n int) (sum, squares float64)

// momentsAVX512 takes n > 0 elements, a multiple of 16.
//
//go:noescape
func momentsAVX512(x *float32, n int) (sum, squares float64)

// centerAVX2 and centerAVX512 take any n > 0.
//
//go:noescape
func centerAVX2(y, x, gain, bias *float32, n int, mu, low, rsigma float32)

//go:noescape
func centerAVX512(y, x, gain, bias *float32, n int, mu, low, rsigma float32)

//go:noescape
func normGradAVX2(a *Gradient)

//go:noescape
func normGradAVX512(a *Gradient)
