package onednn

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// oneDNN squares differences from the mean in f32. A row of larger ones has the variance +Inf: it
// becomes the bias, and has no part in the gradient of γ. Such rows are computed here, in f64.

// overflows reports whether a variance is that of a row whose squares have no f32.
func overflows(variance float32) bool { return math.IsInf(float64(variance), 1) }

// declineWide declines an input with elements whose squares have no f32.
func declineWide(x *tensor.Tensor) error {
	const largest = 0x1p62
	for i, v := range x.Float64s() {
		if v = math.Abs(v); v > largest && !math.IsInf(v, 0) {
			return opregistry.Unsupported("given input[%d] of size %g in place, whose square has no f32", i, v)
		}
	}
	return nil
}

// rowOf returns a row of contiguous operands as a tensor.
func rowOf(x *tensor.Tensor, row int) (*tensor.Tensor, error) {
	cols := x.Shape().Cols()
	return x.AsStrided([]int{cols}, []int{1}, x.Offset()+row*cols)
}

// wideForward computes a row whose variance overflows f32. gain and bias are those of the call.
func wideForward(a *norm.LayerNormFwdArgs, row int, gain, bias []float32) (mu, rsigma float32, err error) {
	in, err := rowOf(a.Input, row)
	if err != nil {
		return 0, 0, err
	}
	out, err := rowOf(a.Output, row)
	if err != nil {
		return 0, 0, err
	}
	x := in.Float64s()
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	r := 1 / math.Sqrt(variance+float64(a.Eps))
	for i, v := range x {
		x[i] = (v-mean)*r*float64(gain[i]) + float64(bias[i])
	}
	return float32(mean), float32(r), out.SetFloat64s(x)
}

// wideRow is a row whose variance overflows f32, of a gradient that may be written over.
type wideRow struct {
	row   int
	x, dz []float64
}

func newWideRow(a *norm.LayerNormBwdArgs, row int) (wideRow, error) {
	w := wideRow{row: row}
	x, err := rowOf(a.X, row)
	if err != nil {
		return w, err
	}
	dz, err := rowOf(a.DZ, row)
	if err != nil {
		return w, err
	}
	w.x, w.dz = x.Float64s(), dz.Float64s()
	return w, nil
}

// backward computes dx of the row and adds its part of dgamma, which is nil if it is not wanted.
func (w wideRow) backward(a *norm.LayerNormBwdArgs, gain, dgamma []float32) error {
	out, err := rowOf(a.DX, w.row)
	if err != nil {
		return err
	}
	x, dz, n := w.x, w.dz, float64(len(w.x))
	mu, r := float64(tensor.Data[float32](a.Mu)[w.row]), float64(tensor.Data[float32](a.RSigma)[w.row])
	mean, slope := 0.0, 0.0
	for i := range x {
		x[i] = (x[i] - mu) * r
		if dgamma != nil {
			dgamma[i] += float32(dz[i] * x[i])
		}
		dz[i] *= float64(gain[i])
		mean += dz[i] / n
		slope += dz[i] * x[i] / n
	}
	for i := range x {
		x[i] = r * (dz[i] - mean - x[i]*slope)
	}
	return out.SetFloat64s(x)
}
