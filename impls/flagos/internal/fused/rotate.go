package fused

// RotateHalves turns the pairs (x0[i], x1[i]) of several heads by one set of
// angles. For each head k < heads, with y0, y1 from element k·yPitch on, x0 and
// x1 from k·xPitch on, and i < len(c0):
//
//	y0[i] = x0[i]·c0[i] − x1[i]·s0[i]
//	y1[i] = x1[i]·c1[i] + x0[i]·s1[i]
//
// The cosines and sines have one length. y0 and y1 may be x0 and x1. To turn back
// by the transposed rotation, exchange the zeroth and first y, x and c.
func RotateHalves(y0, y1 []float32, yPitch int, x0, x1 []float32, xPitch, heads int, c0, c1, s0, s1 []float32) {
	n := len(c0)
	if n == 0 || heads == 0 {
		return
	}
	c1, s0, s1 = c1[:n], s0[:n], s1[:n]
	yEnd, xEnd := (heads-1)*yPitch+n, (heads-1)*xPitch+n
	y0, y1, x0, x1 = y0[:yEnd], y1[:yEnd], x0[:xEnd], x1[:xEnd]
	if racing {
		raceRead(c0, c1, s0, s1)
		for k := range heads {
			raceRead(x0[k*xPitch:][:n], x1[k*xPitch:][:n])
			raceWrite(y0[k*yPitch:][:n], y1[k*yPitch:][:n])
		}
	}
	done := rotateHalvesVector(y0, y1, yPitch, x0, x1, xPitch, heads, c0, c1, s0, s1)
	if done == n {
		return
	}
	c0, c1, s0, s1 = c0[done:], c1[done:], s0[done:], s1[done:]
	for k := range heads {
		y, x := k*yPitch+done, k*xPitch+done
		rotateHalvesGo(y0[y:], y1[y:], x0[x:], x1[x:], c0, c1, s0, s1)
	}
}

func rotateHalvesGo(y0, y1, x0, x1, c0, c1, s0, s1 []float32) {
	h := len(c0)
	y0, y1, x0, x1 = y0[:h], y1[:h], x0[:h], x1[:h]
	c1, s0, s1 = c1[:h], s0[:h], s1[:h]
	for i := range c0 {
		a, b := x0[i], x1[i]
		y0[i] = a*c0[i] - b*s0[i]
		y1[i] = b*c1[i] + a*s1[i]
	}
}

// RotatePairs turns the pairs (x[2i], x[2i+1]):
//
//	y[2i]   = x[2i]·c[2i]     + x[2i+1]·s[2i]
//	y[2i+1] = x[2i+1]·c[2i+1] + x[2i]·s[2i+1]
//
// All slices have one even length; the signs of a rotation are in s. y may be x.
func RotatePairs(y, x, c, s []float32) {
	n := len(y)
	x, c, s = x[:n], c[:n], s[:n]
	raceRead(x, c, s)
	raceWrite(y)
	done := rotatePairsVector(y, x, c, s)
	rotatePairsGo(y[done:], x[done:], c[done:], s[done:])
}

func rotatePairsGo(y, x, c, s []float32) {
	for len(y) >= 2 && len(x) >= 2 && len(c) >= 2 && len(s) >= 2 {
		a, b := x[0], x[1]
		y[0] = a*c[0] + b*s[0]
		y[1] = b*c[1] + a*s[1]
		y, x, c, s = y[2:], x[2:], c[2:], s[2:]
	}
}
