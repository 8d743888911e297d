package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/activation"
)

// capped returns limit·tanh(x/limit), and the derivative. A limit of 0 is none.
func capped(x float64, limit float32) (value, slope float64) {
	if limit == 0 {
		return x, 1
	}
	t := math.Tanh(x / float64(limit))
	return float64(limit) * t, 1 - t*t
}

// softcap implements activation.Softcap.
func softcap(a activation.SoftcapArgs) error {
	y := a.Input.Float64s()
	for i, x := range y {
		y[i], _ = capped(x, a.Limit)
	}
	return a.Output.SetFloat64s(y)
}

// dsoftcap implements activation.DSoftcap.
func dsoftcap(a activation.DSoftcapArgs) error {
	dx := a.Grad.Float64s()
	for i, x := range a.FwdInput.Float64s() {
		_, slope := capped(x, a.Limit)
		dx[i] *= slope
	}
	return a.Output.SetFloat64s(dx)
}
