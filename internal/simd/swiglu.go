package simd

// SwiGLU stores a gate's product:
//
//	dst[i] = a[i]·σ(a[i])·b[i]
//
// for every element of a, with σ as Sigmoid has it. dst may be a or b. Source:
// Shazeer 2020, arXiv:2002.05202.
func SwiGLU(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	raceRead(a)
	raceRead(b)
	raceWrite(dst)
	swiGLU(dst, a, b)
}

// SwiGLUGrad stores the gradients of SwiGLU:
//
//	da[i] = dy[i]·b[i]·(σ(a[i]) + a[i]·σ(a[i])·(1−σ(a[i])))
//	db[i] = dy[i]·a[i]·σ(a[i])
//
// for every element of a. da and db are disjoint; da may be a and db may be b.
func SwiGLUGrad(da, db, dy, a, b []float32) {
	da, db, dy, b = da[:len(a)], db[:len(a)], dy[:len(a)], b[:len(a)]
	raceRead(dy)
	raceRead(a)
	raceRead(b)
	raceWrite(da)
	raceWrite(db)
	swiGLUGrad(da, db, dy, a, b)
}

func swiGLUGeneric(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v / (1 + Exp1(-v)) * b[i]
	}
}

func swiGLUGradGeneric(da, db, dy, a, b []float32) {
	da, db, dy, b = da[:len(a)], db[:len(a)], dy[:len(a)], b[:len(a)]
	for i, v := range a {
		s, d := 1/(1+Exp1(-v)), dy[i]
		silu := v * s
		da[i], db[i] = d*b[i]*(s+silu*(1-s)), d*silu
	}
}
