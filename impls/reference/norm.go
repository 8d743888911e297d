package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// rmsnormFwd implements norm.RMSNormFwd.
func rmsnormFwd(a norm.RMSNormFwdArgs) error {
	rows, cols := a.Input.Shape().Rows(), a.Input.Shape().Cols()
	x, g := a.Input.Float64s(), scales(a.Weight, a.ZeroCenteredGamma)
	rsigma := make([]float64, rows)
	for r := range rows {
		row := x[r*cols : (r+1)*cols]
		sum := 0.0
		for _, v := range row {
			sum += v * v
		}
		rsigma[r] = 1 / math.Sqrt(sum/float64(cols)+float64(a.Eps))
		for i, v := range row {
			row[i] = v * rsigma[r] * g[i]
		}
	}
	if err := a.Output.SetFloat64s(x); err != nil {
		return err
	}
	return a.RSigma.SetFloat64s(rsigma)
}

// rmsnormBwd implements norm.RMSNormBwd.
func rmsnormBwd(a norm.RMSNormBwdArgs) error {
	dx, dgamma := rmsnormGradient(a)
	if err := a.DX.SetFloat64s(dx); err != nil {
		return err
	}
	return a.DGamma.SetFloat64s(dgamma)
}

// rmsnormBwdAdd implements norm.RMSNormBwdAdd.
func rmsnormBwdAdd(a norm.RMSNormBwdAddArgs) error {
	dx, dgamma := rmsnormGradient(a.Bwd())
	for i, v := range a.Add.Float64s() {
		dx[i] += v
	}
	if err := a.DX.SetFloat64s(dx); err != nil {
		return err
	}
	return a.DGamma.SetFloat64s(dgamma)
}

// rmsnormGradient returns dx and dgamma; rows add to dgamma in ascending order.
func rmsnormGradient(a norm.RMSNormBwdArgs) (dx, dgamma []float64) {
	rows, cols := a.X.Shape().Rows(), a.X.Shape().Cols()
	x, dz, rsigma, g := a.X.Float64s(), a.DZ.Float64s(), a.RSigma.Float64s(), scales(a.Gamma, a.ZeroCenteredGamma)
	dx, dgamma = make([]float64, len(x)), make([]float64, cols)
	for r := range rows {
		at := r * cols
		mean := 0.0
		for i := range cols {
			hat := x[at+i] * rsigma[r]
			mean += dz[at+i] * g[i] * hat / float64(cols)
			dgamma[i] += dz[at+i] * hat
		}
		for i := range cols {
			hat := x[at+i] * rsigma[r]
			dx[at+i] = rsigma[r] * (dz[at+i]*g[i] - hat*mean)
		}
	}
	return dx, dgamma
}

// scales returns γ, or γ+1 when γ is stored centred at zero.
func scales(gamma *tensor.Tensor, zeroCentered bool) []float64 {
	g := gamma.Float64s()
	if zeroCentered {
		for i := range g {
			g[i]++
		}
	}
	return g
}
