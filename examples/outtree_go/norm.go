package acme

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
)

// rmsnormFwd follows norm.RMSNormFwd. Sums are f64, and each row is computed by one
// worker, so results do not depend on their number. Output may be Input.
func rmsnormFwd(e *opregistry.Exec, a norm.RMSNormFwdArgs) error {
	data, err := floats(a.Input, a.Weight, a.Output, a.RSigma)
	if err != nil {
		return err
	}
	x, weight, y, rsigma := data[0], data[1], data[2], data[3]
	cols, shift := len(weight), shift(a.ZeroCenteredGamma)
	e.Blocks(a.Input.Shape().Rows(), block, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			in, out := x[r*cols:][:cols], y[r*cols:][:cols]
			sum := 0.0
			for _, v := range in {
				sum += float64(v) * float64(v)
			}
			scale := 1 / math.Sqrt(sum/float64(cols)+float64(a.Eps))
			rsigma[r] = float32(scale)
			for i, v := range in {
				out[i] = float32(float64(v) * scale * (float64(weight[i]) + shift))
			}
		}
	})
	return nil
}

// rmsnormBwd follows norm.RMSNormBwd. Sums are f64; those over rows run in ascending
// order. DX may be DZ, which is why the rows of DX come last.
func rmsnormBwd(e *opregistry.Exec, a norm.RMSNormBwdArgs) error {
	data, err := floats(a.DZ, a.X, a.RSigma, a.Gamma, a.DX, a.DGamma)
	if err != nil {
		return err
	}
	dz, x, rsigma, gamma, dx, dgamma := data[0], data[1], data[2], data[3], data[4], data[5]
	cols, shift := len(gamma), shift(a.ZeroCenteredGamma)
	e.Blocks(cols, block, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sum := 0.0
			for r, scale := range rsigma {
				sum += float64(dz[r*cols+i]) * float64(x[r*cols+i]) * float64(scale)
			}
			dgamma[i] = float32(sum)
		}
	})
	e.Blocks(len(rsigma), block, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			in, grad, out := x[r*cols:][:cols], dz[r*cols:][:cols], dx[r*cols:][:cols]
			scale, mean := float64(rsigma[r]), 0.0
			for i, v := range in {
				mean += float64(grad[i]) * (float64(gamma[i]) + shift) * float64(v) * scale
			}
			mean /= float64(cols)
			for i, v := range in {
				out[i] = float32(scale * (float64(grad[i])*(float64(gamma[i])+shift) - float64(v)*scale*mean))
			}
		}
	})
	return nil
}

// shift is what a weight that is stored around zero lacks.
func shift(zeroCentered bool) float64 {
	if zeroCentered {
		return 1
	}
	return 0
}
