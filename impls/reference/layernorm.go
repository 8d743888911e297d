package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/norm"
)

// layernormFwd implements norm.LayerNormFwd.
func layernormFwd(a norm.LayerNormFwdArgs) error {
	rows, cols := a.Input.Shape().Rows(), a.Input.Shape().Cols()
	x, g, beta := a.Input.Float64s(), scales(a.Weight, a.ZeroCenteredGamma), make([]float64, cols)
	if a.Bias != nil {
		beta = a.Bias.Float64s()
	}
	mu, rsigma := make([]float64, rows), make([]float64, rows)
	for r := range rows {
		row := x[r*cols : (r+1)*cols]
		for _, v := range row {
			mu[r] += v / float64(cols)
		}
		variance := 0.0
		for _, v := range row {
			variance += (v - mu[r]) * (v - mu[r]) / float64(cols)
		}
		rsigma[r] = 1 / math.Sqrt(variance+float64(a.Eps))
		for i, v := range row {
			row[i] = (v-mu[r])*rsigma[r]*g[i] + beta[i]
		}
	}
	if err := a.Output.SetFloat64s(x); err != nil {
		return err
	}
	if err := a.Mu.SetFloat64s(mu); err != nil {
		return err
	}
	return a.RSigma.SetFloat64s(rsigma)
}

// layernormBwd implements norm.LayerNormBwd; rows add to dgamma and dbeta in ascending order.
func layernormBwd(a norm.LayerNormBwdArgs) error {
	rows, cols := a.X.Shape().Rows(), a.X.Shape().Cols()
	x, dz, g := a.X.Float64s(), a.DZ.Float64s(), scales(a.Gamma, a.ZeroCenteredGamma)
	mu, rsigma := a.Mu.Float64s(), a.RSigma.Float64s()
	dx, dgamma, dbeta := make([]float64, len(x)), make([]float64, cols), make([]float64, cols)
	for r := range rows {
		at := r * cols
		hat := func(i int) float64 { return (x[at+i] - mu[r]) * rsigma[r] }
		mean, meanHat := 0.0, 0.0
		for i := range cols {
			mean += dz[at+i] * g[i] / float64(cols)
			meanHat += dz[at+i] * g[i] * hat(i) / float64(cols)
			dgamma[i] += dz[at+i] * hat(i)
			dbeta[i] += dz[at+i]
		}
		for i := range cols {
			dx[at+i] = rsigma[r] * (dz[at+i]*g[i] - mean - hat(i)*meanHat)
		}
	}
	if err := a.DX.SetFloat64s(dx); err != nil {
		return err
	}
	if a.DBeta != nil {
		if err := a.DBeta.SetFloat64s(dbeta); err != nil {
			return err
		}
	}
	return a.DGamma.SetFloat64s(dgamma)
}
