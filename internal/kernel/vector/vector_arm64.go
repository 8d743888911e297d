//go:build !noasm

package vector

import (
	"math"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// quad is the number of elements of a vector.
const quad = 4

// wholeQuads returns how many of n elements whole vectors hold, none without NEON.
func wholeQuads(n int) int {
	if !cpufeat.Has(cpufeat.NEON) {
		return 0
	}
	return n &^ (quad - 1)
}

func dot(x, y []float32) float32 {
	if !cpufeat.Has(cpufeat.NEON) {
		return dotGeneric(x, y)
	}
	var s products
	s.add(x, y)
	return s.sum()
}

// products are partial sums of a dot product.
type products struct {
	whole [16]float32
	rest  [4]float32
}

// add adds a stretch, all but the last one of a multiple of 16 elements.
func (s *products) add(x, y []float32) {
	n := len(x) &^ 15
	if n > 0 {
		addProductsNEON(&s.whole, &x[0], &y[0], n)
	}
	addProducts(&s.rest, x[n:], y[n:len(x)])
}

func (s *products) sum() float32 {
	w := &s.whole
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			w[i] += w[i+n]
		}
	}
	return w[0] + ((s.rest[0] + s.rest[1]) + (s.rest[2] + s.rest[3]))
}

func sum(x []float32) float32 { return sumGeneric(x) }

func maximum(x []float32) float32 {
	n := wholeQuads(len(x))
	if n == 0 {
		return maxGeneric(x)
	}
	return max(maximumNEON(&x[0], n), maxGeneric(x[n:]))
}

func axpy(a float32, x, y []float32) {
	n := wholeQuads(len(x))
	if n > 0 {
		axpyNEON(&y[0], &x[0], n, a)
	}
	axpyGeneric(a, x[n:], y[n:])
}

func scale(a float32, dst, x []float32) {
	n := wholeQuads(len(x))
	if n > 0 {
		scaleNEON(&dst[0], &x[0], n, a)
	}
	scaleGeneric(a, dst[n:], x[n:])
}

func add(dst, x, y []float32) {
	n := wholeQuads(len(x))
	if n > 0 {
		addNEON(&dst[0], &x[0], &y[0], n)
	}
	addGeneric(dst[n:], x[n:], y[n:])
}

func mul(dst, x, y []float32) {
	n := wholeQuads(len(x))
	if n > 0 {
		mulNEON(&dst[0], &x[0], &y[0], n)
	}
	mulGeneric(dst[n:], x[n:], y[n:])
}

func mulSub(dst, x, y []float32, c float32) {
	n := wholeQuads(len(x))
	if n > 0 {
		mulSubNEON(&dst[0], &x[0], &y[0], n, c)
	}
	mulSubGeneric(dst[n:], x[n:], y[n:], c)
}

// The functions below compute the elements after whole vectors in a vector, too, so that an element
// has the same bits wherever it lies.

func expSum(dst, x []float32, shift float32) (sum float32) {
	if !cpufeat.Has(cpufeat.NEON) {
		return expSumGeneric(dst, x, shift)
	}
	n := wholeQuads(len(x))
	if n > 0 {
		sum = expSumNEON(&dst[0], &x[0], n, shift)
	}
	if n < len(x) {
		var t [quad]float32
		copy(t[:], x[n:])
		expSumNEON(&t[0], &t[0], quad, shift)
		for _, v := range t[:copy(dst[n:len(x)], t[:])] {
			sum += v
		}
	}
	return sum
}

func expScale(dst, x []float32, shift, a float32) {
	if !cpufeat.Has(cpufeat.NEON) {
		expScaleGeneric(dst, x, shift, a)
		return
	}
	n := wholeQuads(len(x))
	if n > 0 {
		expScaleNEON(&dst[0], &x[0], n, shift, a)
	}
	if n < len(x) {
		var t [quad]float32
		copy(t[:], x[n:])
		expScaleNEON(&t[0], &t[0], quad, shift, a)
		copy(dst[n:len(x)], t[:])
	}
}

func sigmoid(dst, x []float32) {
	if !cpufeat.Has(cpufeat.NEON) {
		sigmoidGeneric(dst, x)
		return
	}
	n := wholeQuads(len(x))
	if n > 0 {
		sigmoidNEON(&dst[0], &x[0], n)
	}
	if n < len(x) {
		var t [quad]float32
		copy(t[:], x[n:])
		sigmoidNEON(&t[0], &t[0], quad)
		copy(dst[n:len(x)], t[:])
	}
}

func gate(dst, a, b []float32, f Swish) {
	if !cpufeat.Has(cpufeat.NEON) {
		gateGeneric(dst, a, b, f)
		return
	}
	n := wholeQuads(len(a))
	if n > 0 {
		gateNEON(&dst[0], &a[0], &b[0], n, f.Linear, f.Cubic)
	}
	if n < len(a) {
		var t, u [quad]float32
		copy(t[:], a[n:])
		copy(u[:], b[n:len(a)])
		gateNEON(&t[0], &t[0], &u[0], quad, f.Linear, f.Cubic)
		copy(dst[n:len(a)], t[:])
	}
}

func gateGrad(da, db, dy, a, b []float32, f Swish) {
	if !cpufeat.Has(cpufeat.NEON) {
		gateGradGeneric(da, db, dy, a, b, f)
		return
	}
	n := wholeQuads(len(a))
	if n > 0 {
		gateGradNEON(&da[0], &db[0], &dy[0], &a[0], &b[0], n, f.Linear, f.Cubic)
	}
	if n < len(a) {
		var t, u, d [quad]float32
		copy(t[:], a[n:])
		copy(u[:], b[n:len(a)])
		copy(d[:], dy[n:len(a)])
		gateGradNEON(&t[0], &u[0], &d[0], &t[0], &u[0], quad, f.Linear, f.Cubic)
		copy(da[n:len(a)], t[:])
		copy(db[n:len(a)], u[:])
	}
}

func normal(cdf, pdf, x []float32) { normalGeneric(cdf, pdf, x) }

func softCap(dst, x []float32, inverse, limit float32) { softCapGeneric(dst, x, inverse, limit) }

func clamp(dst, x []float32, lo, hi float32)   { clampGeneric(dst, x, lo, hi) }
func keep(dst, y, x []float32, lo, hi float32) { keepGeneric(dst, y, x, lo, hi) }

func mulScaleVector(dst, x, w []float32, scale float32) int {
	n := wholeQuads(len(x))
	if n > 0 {
		mulScaleNEON(&dst[0], &x[0], &w[0], n, scale)
	}
	return n
}

func scaleFiniteVector(_, _ []float32, _ float32) (int, bool) { return 0, true }

func sumSquaresVector(x []float32) (int, float64) {
	n := wholeQuads(len(x))
	if n == 0 {
		return 0, 0
	}
	return n, sumSquaresNEON(&x[0], n)
}

func logSumExp(dst []float64, x []float32, cols, pitch int) {
	if !cpufeat.Has(cpufeat.NEON) {
		logSumExpGeneric(dst, x, cols, pitch)
		return
	}
	for r := range dst {
		dst[r] = logSumExpNEON(x[r*pitch:][:cols])
	}
}

func logSumExpNEON(x []float32) float64 {
	most := maximum(x)
	if most-most != 0 { // not finite
		return logSumExp1(x)
	}
	var each [64]float32
	sum := 0.
	for rest := x; len(rest) > 0; {
		n := min(len(rest), len(each))
		sum += float64(expSum(each[:n], rest[:n], most))
		rest = rest[n:]
	}
	if sum >= 1 {
		return float64(most) + math.Log(sum)
	}
	return logSumExp1(x) // with a NaN
}

func dotRows(dst, x, y []float32, pitch int) {
	for i := range dst {
		dst[i] = dot(x, y[i*pitch:][:len(x)])
	}
}

func tileVector() int { return 0 }

func dotTile(*TileProducts, *TileSums, []float32, int, []float32, int, int) {}

func axpyRows(dst, a, y []float32, pitch int) {
	for i, v := range a {
		axpy(v, y[i*pitch:][:len(dst)], dst)
	}
}

func sumRows(dst, w []float32, wStep int, y []float32, pitch int, rows []int32) {
	for i, r := range rows {
		row, weight := y[int(r)*pitch:][:len(dst)], w[i*wStep]
		if i == 0 {
			scale(weight, dst, row)
		} else {
			axpy(weight, row, dst)
		}
	}
}

func dotRowsBF16(dst, x []float32, y []uint16, pitch int) {
	if !cpufeat.Has(cpufeat.NEON) {
		dotRowsBF16Generic(dst, x, y, pitch)
		return
	}
	dotRowsHalf(dst, x, y, pitch, widenBF16Generic)
}

func dotRowsF16(dst, x []float32, y []uint16, pitch int) {
	if !cpufeat.Has(cpufeat.NEON) {
		dotRowsF16Generic(dst, x, y, pitch)
		return
	}
	dotRowsHalf(dst, x, y, pitch, widenF16Generic)
}

// dotRowsHalf adds in the order of dot.
func dotRowsHalf(dst, x []float32, y []uint16, pitch int, widen func([]float32, []uint16)) {
	var part [64]float32
	for i := range dst {
		var s products
		for row, rest := y[i*pitch:][:len(x)], x; len(rest) > 0; {
			n := min(len(rest), len(part))
			widen(part[:n], row[:n])
			s.add(rest[:n], part[:n])
			row, rest = row[n:], rest[n:]
		}
		dst[i] = s.sum()
	}
}

func widenBF16Vector([]float32, []uint16) (done int)  { return 0 }
func widenF16Vector([]float32, []uint16) (done int)   { return 0 }
func narrowBF16Vector([]uint16, []float32) (done int) { return 0 }
func narrowF16Vector([]uint16, []float32) (done int)  { return 0 }

// The functions in assembly compute what the generic ones do, for n > 0 elements, a multiple of
// quad.

// addProductsNEON adds the products of n elements, a multiple of 16, each sixteenth to one sum.
//
//go:noescape
func addProductsNEON(s *[16]float32, x, y *float32, n int)

//go:noescape
func axpyNEON(y, x *float32, n int, a float32)

//go:noescape
func scaleNEON(dst, x *float32, n int, a float32)

//go:noescape
func addNEON(dst, x, y *float32, n int)

//go:noescape
func mulNEON(dst, x, y *float32, n int)

//go:noescape
func mulSubNEON(dst, x, y *float32, n int, c float32)

//go:noescape
func mulScaleNEON(dst, x, w *float32, n int, scale float32)

//go:noescape
func sumSquaresNEON(x *float32, n int) (sum float64)

//go:noescape
func maximumNEON(x *float32, n int) float32

//go:noescape
func expSumNEON(dst, x *float32, n int, shift float32) (sum float32)

//go:noescape
func expScaleNEON(dst, x *float32, n int, shift, a float32)

//go:noescape
func sigmoidNEON(dst, x *float32, n int)

//go:noescape
func gateNEON(dst, a, b *float32, n int, linear, cubic float32)

//go:noescape
func gateGradNEON(da, db, dy, a, b *float32, n int, linear, cubic float32)
