package vector

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// Swish is a gate a·σ(u) of a number a, where σ is the logistic function and
//
//	u = Linear·a + Cubic·a³
//
// {1, 0} is SiLU. Cubic is less than 1 in magnitude.
type Swish struct{ Linear, Cubic float32 }

// GELU returns the gate of x/2·(1 + tanh u) = x·σ(2u), the tanh form of GELU. Source: Hendrycks and
// Gimpel 2016, arXiv:1606.08415.
func GELU() Swish {
	const linear = 1.5957691216057308 // 2·√(2/π)
	return Swish{Linear: linear, Cubic: linear * 0.044715}
}

// Gate stores the product of a gate and another number:
//
//	dst[i] = a[i]·σ(u)·b[i]
//
// for every element of a, with u from f and σ computed as by Sigmoid. dst may be a or b. Source:
// Shazeer 2020, arXiv:2002.05202.
func Gate(dst, a, b []float32, f Swish) {
	dst, b = dst[:len(a)], b[:len(a)]
	race.Read(a)
	race.Read(b)
	race.Write(dst)
	gate(dst, a, b, f)
}

// GateGrad stores the gradients of Gate:
//
//	da[i] = dy[i]·b[i]·(σ(u) + a[i]·σ(u)·(1−σ(u))·(Linear + 3·Cubic·a[i]²))
//	db[i] = dy[i]·a[i]·σ(u)
//
// for every element of a. da and db are disjoint; da may be a or dy and db may be b.
func GateGrad(da, db, dy, a, b []float32, f Swish) {
	da, db, dy, b = da[:len(a)], db[:len(a)], dy[:len(a)], b[:len(a)]
	race.Read(dy)
	race.Read(a)
	race.Read(b)
	race.Write(da)
	race.Write(db)
	gateGrad(da, db, dy, a, b, f)
}

func gateGeneric(dst, a, b []float32, f Swish) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v / (1 + Exp1(-v*(f.Linear+f.Cubic*square(v)))) * b[i]
	}
}

func gateGradGeneric(da, db, dy, a, b []float32, f Swish) {
	da, db, dy, b = da[:len(a)], db[:len(a)], dy[:len(a)], b[:len(a)]
	for i, v := range a {
		q, d := square(v), dy[i]
		e := Exp1(-v * (f.Linear + f.Cubic*q))
		s := 1 / (1 + e)
		gated, rest := v*s, min(e, math.MaxFloat32)*s // rest is 1−σ with all its digits, or 0 where gated is 0
		da[i], db[i] = d*b[i]*(s+gated*(rest*(f.Linear+3*f.Cubic*q))), d*gated
	}
}

// square returns v², limited to the largest finite number so that its product with a cubic
// coefficient of 0 is 0.
func square(v float32) float32 { return min(v*v, math.MaxFloat32) }
