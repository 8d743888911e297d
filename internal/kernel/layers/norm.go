package layers

import (
	"math"

	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/race"
)

// Rows is a matrix whose rows begin Pitch elements apart.
type Rows struct {
	Data  []float32
	Pitch int
}

func (r *Rows) row(i, cols int) []float32 { return r.Data[i*r.Pitch:][:cols] }

// RMSNorm normalises rows by their root mean square and stores its inverse:
//
//	rsigma  = 1 / √(mean(x²) + eps)
//	y[i]    = x[i]·rsigma·g[i]
//
// for len(rsigma) rows of len(g) columns, at least one. Squares are added in f64. y may be x.
func RMSNorm(y, x Rows, g, rsigma []float32, eps float64) {
	cols := len(g)
	for r := range rsigma {
		x := x.row(r, cols)
		rsigma[r] = float32(1 / math.Sqrt(vector.SumSquares(x)/float64(cols)+eps))
		vector.MulScale(y.row(r, cols), x, g, rsigma[r])
	}
}

// LayerNorm shifts and scales rows to mean 0 and variance 1, and stores the mean and the inverse of
// the deviation:
//
//	mu     = mean(x)
//	rsigma = 1 / √(mean((x − mu)²) + eps)
//	y[i]   = (x[i] − mu)·rsigma·g[i] + b[i]
//
// for len(rsigma) rows of len(g) columns, at least one. Both means are f64, and y is computed with
// mu to twice the digits of f32. y may be x.
func LayerNorm(y, x Rows, g, b, mu, rsigma []float32, eps float64) {
	cols := len(g)
	for r := range rsigma {
		x := x.row(r, cols)
		sum, squares := moments(x)
		mean := sum / float64(cols)
		variance := squares/float64(cols) - mean*mean
		if variance < cancelled*mean*mean {
			variance = varianceAround(x, mean)
		}
		mu[r], rsigma[r] = float32(mean), float32(1/math.Sqrt(variance+eps))
		center(y.row(r, cols), x, g, b, mu[r], float32(mean-float64(mu[r])), rsigma[r])
	}
}

// cancelled is the ratio of the variance to the square of the mean below which computing the
// variance as a difference of two such squares loses too much: 20 of 53 bits.
const cancelled = 0x1p-20

// varianceAround returns the mean square of x − mean.
func varianceAround(x []float32, mean float64) float64 {
	sum := 0.
	for _, v := range x {
		d := float64(v) - mean
		sum += d * d
	}
	return sum / float64(len(x))
}

// moments returns Σ x[i] and Σ x[i]², in f64 in several partial sums.
func moments(x []float32) (sum, squares float64) {
	race.Read(x)
	done, sum, squares := momentsVector(x)
	for _, v := range x[done:] {
		d := float64(v)
		sum += d
		squares += d * d
	}
	return sum, squares
}

// center computes y[i] = ((x[i] − mu) − low)·rsigma·g[i] + b[i], where low compensates for the
// rounding of mu.
func center(y, x, g, b []float32, mu, low, rsigma float32) {
	race.Read(x)
	race.Read(g)
	race.Read(b)
	race.Write(y)
	done := centerVector(y, x, g, b, mu, low, rsigma)
	y, x, g, b = y[done:], x[done:], g[done:], b[done:]
	x, g, b = x[:len(y)], g[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = ((x[i]-mu)-low)*rsigma*g[i] + b[i]
	}
}

// Gradient holds the operands and results of NormGrad. Those that may be absent are nil then.
type Gradient struct {
	DX            Rows
	DZ, X, Add    Rows      // Add, which may be absent, is added to the result
	G             []float32 // of the columns
	Mu, RSigma    []float32 // of the rows; an absent Mu is 0
	DGamma, DBeta []float32 // of the columns; DBeta may be absent
}

// NormGrad computes the gradient of RMSNorm, or with Mu that of LayerNorm. For each row,
// with x̂ = (x − mu)·rsigma and the means over its elements:
//
//	dx[i]      = rsigma·(dz[i]·g[i] − x̂[i]·mean(dz·g·x̂) − mean(dz·g)) + add[i]
//	dgamma[i] += dz[i]·x̂[i]
//	dbeta[i]  += dz[i]
//
// without mean(dz·g) when Mu is absent. There are len(RSigma) rows of len(G) columns.
// DX may be DZ or Add.
func NormGrad(a *Gradient) {
	if len(a.RSigma) == 0 || len(a.G) == 0 {
		return
	}
	if race.Enabled {
		a.race()
	}
	if !normGradVector(a) {
		a.rows()
	}
}

func (a *Gradient) race() {
	cols := len(a.G)
	race.Read(a.G)
	race.Read(a.Mu)
	race.Read(a.RSigma)
	race.Write(a.DGamma)
	race.Write(a.DBeta)
	for r := range a.RSigma {
		race.Read(a.DZ.row(r, cols))
		race.Read(a.X.row(r, cols))
		if a.Add.Data != nil {
			race.Read(a.Add.row(r, cols))
		}
		race.Write(a.DX.row(r, cols))
	}
}

// rows is NormGrad in plain Go.
func (a *Gradient) rows() {
	cols := len(a.G)
	for r, rsigma := range a.RSigma {
		dx, dz, x := a.DX.row(r, cols), a.DZ.row(r, cols), a.X.row(r, cols)
		var mu, mean float32
		var sum, products float64
		if a.Mu != nil {
			mu = a.Mu[r]
		}
		for i, g := range a.G {
			dzg := dz[i] * g
			sum += float64(dzg)
			products += float64(dzg * ((x[i] - mu) * rsigma))
		}
		slope := float32(products / float64(cols))
		if a.Mu != nil {
			mean = float32(sum / float64(cols))
		}
		for i, g := range a.G {
			d, xhat := dz[i], (x[i]-mu)*rsigma
			a.DGamma[i] += d * xhat
			if a.DBeta != nil {
				a.DBeta[i] += d
			}
			d = rsigma * (d*g - (xhat*slope + mean))
			if a.Add.Data != nil {
				d += a.Add.Data[r*a.Add.Pitch+i]
			}
			dx[i] = d
		}
	}
}
