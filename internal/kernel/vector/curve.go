package vector

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// Normal stores the distribution function Φ of the standard normal distribution and its density φ:
//
//	cdf[i] = ½·erfc(−x[i]/√2)
//	pdf[i] = exp(−x[i]²/2)/√(2π)
//
// for every element of x. cdf and pdf are disjoint; either may be x. Both have few units in the
// last place of error where x is small, and grow to x² units of relative error where they are tiny;
// what is smaller than normal numbers is 0.
//
// With t = 1/(1 + 0.35·|x|), 1 − Φ(|x|) is exp(−x²/2)·t times a polynomial of degree 8 in t that
// was fitted for least relative error, 3·10⁻⁸.
func Normal(cdf, pdf, x []float32) {
	cdf, pdf = cdf[:len(x)], pdf[:len(x)]
	race.Read(x)
	race.Write(cdf)
	race.Write(pdf)
	normal(cdf, pdf, x)
}

// SoftCap stores limit·tanh(x[i]/limit) for every element of x, with a relative error of few units
// in the last place. dst may be x. limit is > 0 and finite.
//
// Below |x/limit| = 0.625 the tangent is a polynomial, that of Cephes' tanhf; beyond it is 1 −
// 2/(1 + exp(2·|x/limit|)).
func SoftCap(dst, x []float32, limit float32) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Write(dst)
	softCap(dst, x, 1/limit, limit)
}

// The constants of Normal and SoftCap; the assembly has the same.
const (
	normalScale = 0.3989422804014327 // 1/√(2π)
	normalStep  = 0.35
	normalC0    = 0.13962140679359436
	normalC1    = 0.13986186683177948
	normalC2    = 0.11983290314674377
	normalC3    = 0.10550783574581146
	normalC4    = -0.023109355941414833
	normalC5    = 0.15917332470417023
	normalC6    = -0.25571340322494507
	normalC7    = 0.14397121965885162
	normalC8    = -0.029145820066332817

	tanhBound = 0.625
	tanhC0    = -3.33332819422e-1
	tanhC1    = 1.33314422036e-1
	tanhC2    = -5.37397155531e-2
	tanhC3    = 2.06390887954e-2
	tanhC4    = -5.70498872745e-3
)

func normalGeneric(cdf, pdf, x []float32) {
	for i, v := range x {
		e := Exp1(-0.5 * (v * v))
		t := 1 / (1 + normalStep*abs(v))
		p := float32(normalC8)
		p = p*t + normalC7
		p = p*t + normalC6
		p = p*t + normalC5
		p = p*t + normalC4
		p = p*t + normalC3
		p = p*t + normalC2
		p = p*t + normalC1
		p = p*t + normalC0
		upper := p * t * e
		if v >= 0 {
			upper = 1 - upper
		}
		cdf[i], pdf[i] = upper, normalScale*e
	}
}

func softCapGeneric(dst, x []float32, inverse, limit float32) {
	for i, v := range x {
		y := v * inverse
		if abs(y) < tanhBound {
			q := y * y
			p := float32(tanhC4)
			p = p*q + tanhC3
			p = p*q + tanhC2
			p = p*q + tanhC1
			p = p*q + tanhC0
			y += p * q * y
		} else {
			y = float32(math.Copysign(float64(1-2/(1+Exp1(2*abs(y)))), float64(y)))
		}
		dst[i] = limit * y
	}
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }
