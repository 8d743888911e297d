//go:build amd64 && !noasm

package vector

import (
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel"
)

func dot(x, y []float32) float32 {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return dotAVX512(x, y)
	case cpufeat.Has(cpufeat.AVX2):
		return dotAVX2(x, y)
	}
	return dotGeneric(x, y)
}

func sum(x []float32) float32 {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return sumAVX512(x)
	case cpufeat.Has(cpufeat.AVX2):
		return sumAVX2(x)
	}
	return sumGeneric(x)
}

func maximum(x []float32) float32 {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return maximumAVX512(x)
	case cpufeat.Has(cpufeat.AVX2):
		return maximumAVX2(x)
	}
	return maxGeneric(x)
}

func axpy(a float32, x, y []float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		axpyAVX512(a, x, y)
	case cpufeat.Has(cpufeat.AVX2):
		axpyAVX2(a, x, y)
	default:
		axpyGeneric(a, x, y)
	}
}

func scale(a float32, dst, x []float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		scaleAVX512(a, dst, x)
	case cpufeat.Has(cpufeat.AVX2):
		scaleAVX2(a, dst, x)
	default:
		scaleGeneric(a, dst, x)
	}
}

func add(dst, x, y []float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		addAVX512(dst, x, y)
	case cpufeat.Has(cpufeat.AVX2):
		addAVX2(dst, x, y)
	default:
		addGeneric(dst, x, y)
	}
}

func mul(dst, x, y []float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		mulAVX512(dst, x, y)
	case cpufeat.Has(cpufeat.AVX2):
		mulAVX2(dst, x, y)
	default:
		mulGeneric(dst, x, y)
	}
}

func mulSub(dst, x, y []float32, c float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		mulSubAVX512(dst, x, y, c)
	case cpufeat.Has(cpufeat.AVX2):
		mulSubAVX2(dst, x, y, c)
	default:
		mulSubGeneric(dst, x, y, c)
	}
}

func expSum(dst, x []float32, shift float32) float32 {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return expSumAVX512(dst, x, shift)
	case cpufeat.Has(cpufeat.AVX2):
		return expSumAVX2(dst, x, shift)
	}
	return expSumGeneric(dst, x, shift)
}

func sigmoid(dst, x []float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		sigmoidAVX512(dst, x)
	case cpufeat.Has(cpufeat.AVX2):
		sigmoidAVX2(dst, x)
	default:
		sigmoidGeneric(dst, x)
	}
}

func expScale(dst, x []float32, shift, a float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		expScaleAVX512(dst, x, shift, a)
	case cpufeat.Has(cpufeat.AVX2):
		expScaleAVX2(dst, x, shift, a)
	default:
		expScaleGeneric(dst, x, shift, a)
	}
}

func gate(dst, a, b []float32, f Swish) {
	switch cubic := f.Cubic != 0; {
	case cubic && cpufeat.Has(cpufeat.AVX512):
		gateCubicAVX512(dst, a, b, f.Linear, f.Cubic)
	case cubic && cpufeat.Has(cpufeat.AVX2):
		gateCubicAVX2(dst, a, b, f.Linear, f.Cubic)
	case cpufeat.Has(cpufeat.AVX512):
		gateAVX512(dst, a, b, f.Linear)
	case cpufeat.Has(cpufeat.AVX2):
		gateAVX2(dst, a, b, f.Linear)
	default:
		gateGeneric(dst, a, b, f)
	}
}

func gateGrad(da, db, dy, a, b []float32, f Swish) {
	switch cubic := f.Cubic != 0; {
	case cubic && cpufeat.Has(cpufeat.AVX512):
		gateGradCubicAVX512(da, db, dy, a, b, f.Linear, f.Cubic)
	case cubic && cpufeat.Has(cpufeat.AVX2):
		gateGradCubicAVX2(da, db, dy, a, b, f.Linear, f.Cubic)
	case cpufeat.Has(cpufeat.AVX512):
		gateGradAVX512(da, db, dy, a, b, f.Linear)
	case cpufeat.Has(cpufeat.AVX2):
		gateGradAVX2(da, db, dy, a, b, f.Linear)
	default:
		gateGradGeneric(da, db, dy, a, b, f)
	}
}

func normal(cdf, pdf, x []float32) {
	if cpufeat.Has(cpufeat.AVX2) {
		normalAVX2(cdf, pdf, x)
	} else {
		normalGeneric(cdf, pdf, x)
	}
}

func softCap(dst, x []float32, inverse, limit float32) {
	if cpufeat.Has(cpufeat.AVX2) {
		softCapAVX2(dst, x, inverse, limit)
	} else {
		softCapGeneric(dst, x, inverse, limit)
	}
}

func clamp(dst, x []float32, lo, hi float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		clampAVX512(dst, x, lo, hi)
	case cpufeat.Has(cpufeat.AVX2):
		clampAVX2(dst, x, lo, hi)
	default:
		clampGeneric(dst, x, lo, hi)
	}
}

func keep(dst, y, x []float32, lo, hi float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		keepAVX512(dst, y, x, lo, hi)
	case cpufeat.Has(cpufeat.AVX2):
		keepAVX2(dst, y, x, lo, hi)
	default:
		keepGeneric(dst, y, x, lo, hi)
	}
}

func mulScaleVector(dst, x, w []float32, scale float32) int {
	n := kernel.WholeLanes(len(x))
	if n > 0 {
		mulScaleAVX2(&dst[0], &x[0], &w[0], n, scale)
	}
	return n
}

func scaleFiniteVector(dst, x []float32, scale float32) (int, bool) {
	n := kernel.WholeLanes(len(x))
	if n == 0 {
		return 0, true
	}
	return n, scaleFiniteAVX2(&dst[0], &x[0], n, scale) == 0
}

func sumSquaresVector(x []float32) (int, float64) {
	n := kernel.WholeLanes(len(x))
	if n == 0 {
		return 0, 0
	}
	return n, sumSquaresAVX2(&x[0], n)
}

// The functions in assembly compute what the generic ones do; see there for the
// loops. Every other operand is at least as long as x.

//go:noescape
func dotAVX512(x, y []float32) float32

//go:noescape
func dotAVX2(x, y []float32) float32

//go:noescape
func sumAVX512(x []float32) float32

//go:noescape
func sumAVX2(x []float32) float32

//go:noescape
func maximumAVX512(x []float32) float32

//go:noescape
func maximumAVX2(x []float32) float32

//go:noescape
func axpyAVX512(a float32, x, y []float32)

//go:noescape
func axpyAVX2(a float32, x, y []float32)

//go:noescape
func scaleAVX512(a float32, dst, x []float32)

//go:noescape
func scaleAVX2(a float32, dst, x []float32)

//go:noescape
func addAVX512(dst, x, y []float32)

//go:noescape
func addAVX2(dst, x, y []float32)

//go:noescape
func mulAVX512(dst, x, y []float32)

//go:noescape
func mulAVX2(dst, x, y []float32)

//go:noescape
func mulSubAVX512(dst, x, y []float32, c float32)

//go:noescape
func mulSubAVX2(dst, x, y []float32, c float32)

//go:noescape
func expSumAVX512(dst, x []float32, shift float32) float32

//go:noescape
func expSumAVX2(dst, x []float32, shift float32) float32

//go:noescape
func sigmoidAVX512(dst, x []float32)

//go:noescape
func sigmoidAVX2(dst, x []float32)

//go:noescape
func expScaleAVX512(dst, x []float32, shift, a float32)

//go:noescape
func expScaleAVX2(dst, x []float32, shift, a float32)

//go:noescape
func gateAVX512(dst, a, b []float32, linear float32)

//go:noescape
func gateCubicAVX512(dst, a, b []float32, linear, cubic float32)

//go:noescape
func gateAVX2(dst, a, b []float32, linear float32)

//go:noescape
func gateCubicAVX2(dst, a, b []float32, linear, cubic float32)

//go:noescape
func gateGradAVX512(da, db, dy, a, b []float32, linear float32)

//go:noescape
func gateGradCubicAVX512(da, db, dy, a, b []float32, linear, cubic float32)

//go:noescape
func gateGradAVX2(da, db, dy, a, b []float32, linear float32)

//go:noescape
func gateGradCubicAVX2(da, db, dy, a, b []float32, linear, cubic float32)

//go:noescape
func normalAVX2(cdf, pdf, x []float32)

//go:noescape
func softCapAVX2(dst, x []float32, inverse, limit float32)

//go:noescape
func clampAVX512(dst, x []float32, lo, hi float32)

//go:noescape
func clampAVX2(dst, x []float32, lo, hi float32)

//go:noescape
func keepAVX512(dst, y, x []float32, lo, hi float32)

//go:noescape
func keepAVX2(dst, y, x []float32, lo, hi float32)

// The following take n > 0 elements, a multiple of 8.

//go:noescape
func mulScaleAVX2(dst, x, w *float32, n int, scale float32)

// scaleFiniteAVX2 returns 0 when every element of x is finite.
//
//go:noescape
func scaleFiniteAVX2(dst, x *float32, n int, scale float32) (bad int32)

//go:noescape
func sumSquaresAVX2(x *float32, n int) (sum float64)
