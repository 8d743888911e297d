package fused

// Gate computes dst[i] = a[i]·s[i]·b[i], the SiLU of a times b when s is the
// logistic function of a. dst may be an operand.
func Gate(dst, a, s, b []float32) {
	n := len(dst)
	a, s, b = a[:n], s[:n], b[:n]
	raceRead(a, s, b)
	raceWrite(dst)
	done := gateVector(dst, a, s, b)
	gateGo(dst[done:], a[done:], s[done:], b[done:])
}

func gateGo(dst, a, s, b []float32) {
	n := len(dst)
	a, s, b = a[:n], s[:n], b[:n]
	for i := range dst {
		dst[i] = a[i] * s[i] * b[i]
	}
}

// GateGrad computes the gradients of Gate with s the logistic function of a:
//
//	da[i] = dy[i]·b[i]·(s[i] + a[i]·s[i]·(1−s[i]))
//	db[i] = dy[i]·a[i]·s[i]
//
// da may be a and db may be b.
func GateGrad(da, db, dy, a, s, b []float32) {
	n := len(da)
	db, dy, a, s, b = db[:n], dy[:n], a[:n], s[:n], b[:n]
	raceRead(dy, a, s, b)
	raceWrite(da, db)
	done := gateGradVector(da, db, dy, a, s, b)
	gateGradGo(da[done:], db[done:], dy[done:], a[done:], s[done:], b[done:])
}

func gateGradGo(da, db, dy, a, s, b []float32) {
	n := len(da)
	db, dy, a, s, b = db[:n], dy[:n], a[:n], s[:n], b[:n]
	for i := range da {
		d, si := dy[i], s[i]
		silu := a[i] * si
		da[i], db[i] = d*b[i]*(si+silu*(1-si)), d*silu
	}
}
