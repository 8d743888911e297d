package fused

// Rows is a matrix whose rows begin Pitch elements apart.
type Rows struct {
	Data  []float32
	Pitch int
}

func (r *Rows) row(i, cols int) []float32 { return r.Data[i*r.Pitch:][:cols] }

// NormGrad computes the gradient of rows of a normalisation by the root mean square
// 1/rsigma. For each row, with the mean over its elements:
//
//	k          = rsigma²·mean(dz·g·x)
//	dx[i]      = rsigma·(dz[i]·g[i] − x[i]·k)
//	dgamma[i] += dz[i]·x[i]·rsigma
//
// There are len(rsigma) rows of len(g) columns. dx may be dz.
func NormGrad(dx, dz, x Rows, dgamma, g, rsigma []float32) {
	cols := len(g)
	if normGradRows(dx, dz, x, dgamma[:cols], g, rsigma) {
		return
	}
	for r, rsigma := range rsigma {
		dz, x := dz.row(r, cols), x.row(r, cols)
		mean := float64(dot3(dz, g, x)) / float64(cols)
		k := float64(rsigma) * float64(rsigma) * mean
		normGrad(dx.row(r, cols), dgamma, dz, x, g, rsigma, float32(k))
	}
}

// dot3 returns Σ a[i]·b[i]·c[i], summed in several partial sums.
func dot3(a, b, c []float32) float32 {
	n := len(a)
	b, c = b[:n], c[:n]
	raceRead(a, b, c)
	done, sum := dot3Vector(a, b, c)
	if done == n {
		return sum
	}
	return sum + dot3Go(a[done:], b[done:], c[done:])
}

func dot3Go(a, b, c []float32) float32 {
	b, c = b[:len(a)], c[:len(a)]
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 && len(c) >= 4 {
		s0 += a[0] * b[0] * c[0]
		s1 += a[1] * b[1] * c[1]
		s2 += a[2] * b[2] * c[2]
		s3 += a[3] * b[3] * c[3]
		a, b, c = a[4:], b[4:], c[4:]
	}
	b, c = b[:len(a)], c[:len(a)]
	for i := range a {
		s0 += a[i] * b[i] * c[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// normGrad computes dx and dgamma of one row of NormGrad for its k.
func normGrad(dx, dgamma, dz, x, g []float32, rsigma, k float32) {
	n := len(dx)
	dgamma, dz, x, g = dgamma[:n], dz[:n], x[:n], g[:n]
	raceRead(dz, x, g)
	raceWrite(dx, dgamma)
	done := normGradVector(dx, dgamma, dz, x, g, rsigma, k)
	if done == n {
		return
	}
	normGradGo(dx[done:], dgamma[done:], dz[done:], x[done:], g[done:], rsigma, k)
}

func normGradGo(dx, dgamma, dz, x, g []float32, rsigma, k float32) {
	n := len(dx)
	dgamma, dz, x, g = dgamma[:n], dz[:n], x[:n], g[:n]
	for i := range dx {
		d, xi := dz[i], x[i]
		dgamma[i] += d * (xi * rsigma)
		dx[i] = rsigma * (d*g[i] - xi*k)
	}
}

// SumSquares returns Σ x[i]², summed in f64 in several partial sums.
func SumSquares(x []float32) float64 {
	raceRead(x)
	done, sum := sumSquaresVector(x)
	return sum + sumSquaresGo(x[done:])
}

func sumSquaresGo(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
		x = x[4:]
	}
	for _, v := range x {
		s0 += float64(v) * float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}
