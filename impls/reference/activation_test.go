package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/tensor"
)

func TestActivations(t *testing.T) {
	t.Parallel()
	slope := ln3 / 1.702 // σ(1.702·slope) = 3/4
	tests := []struct {
		name     string
		function *opregistry.Op[activation.ActivationArgs] // nil for the logistic function, which is a gate only
		gradient *opregistry.Op[activation.DActivationArgs]
		dbias    *opregistry.Op[activation.DBiasDActivationArgs]
		gate     *opregistry.Op[activation.ActivationArgs]
		dgate    *opregistry.Op[activation.DActivationArgs]
		x, y, dy []float64 // dy is the derivative
	}{
		{
			"gelu", activation.GELU, activation.DGELU, activation.DBiasDGELU, activation.GEGLU, activation.DGEGLU,
			[]float64{0, 1, -1, 2, 100, -100, nan},
			[]float64{0, 0.84119199060828, -0.15880800939172, 1.9545976940878, 100, 0, nan},
			[]float64{0.5, 1.0829640838458, -0.082964083845783, 1.0860992566236, 1, 0, nan},
		},
		{
			"gelu_erf", activation.GELUErf, activation.DGELUErf, activation.DBiasDGELUErf, activation.GEGLUErf, activation.DGEGLUErf,
			[]float64{0, 1, -1, 2, 100, -100, nan},
			[]float64{0, 0.84134474606854, -0.15865525393146, 1.9544997361036, 100, 0, nan},
			[]float64{0.5, 1.0833154705877, -0.083315470587676, 1.0852318327105, 1, 0, nan},
		},
		{
			"qgelu", activation.QGELU, activation.DQGELU, activation.DBiasDQGELU, activation.QGEGLU, activation.DQGEGLU,
			[]float64{0, slope, -slope, nan},
			[]float64{0, 0.75 * slope, -0.25 * slope, nan},
			[]float64{0.5, 0.75 + ln3*3/16, 0.25 - ln3*3/16, nan},
		},
		{
			"relu", activation.ReLU, activation.DReLU, activation.DBiasDReLU, activation.ReGLU, activation.DReGLU,
			[]float64{0, 3, -3, nan}, []float64{0, 3, 0, nan}, []float64{0, 1, 0, nan},
		},
		{
			"srelu", activation.SReLU, activation.DSReLU, activation.DBiasDSReLU, activation.SReGLU, activation.DSReGLU,
			[]float64{0, 3, -3, nan}, []float64{0, 9, 0, nan}, []float64{0, 6, 0, nan},
		},
		{
			"silu", activation.SiLU, activation.DSiLU, activation.DBiasDSiLU, activation.SwiGLU, activation.DSwiGLU,
			[]float64{0, ln3, -ln3, nan},
			[]float64{0, 0.75 * ln3, -0.25 * ln3, nan},
			[]float64{0.5, 0.75 + ln3*3/16, 0.25 - ln3*3/16, nan},
		},
		{
			"sigmoid", nil, nil, nil, activation.GLU, activation.DGLU,
			[]float64{0, ln3, -ln3, nan}, []float64{0.5, 0.75, 0.25, nan}, []float64{0.25, 3. / 16, 3. / 16, nan},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := len(tt.x)
			rows := []int{2, n} // two equal rows
			x, grad := f64(t, rows, append(tt.x, tt.x...)...), f64(t, rows, constant(2*n, 2)...)
			if tt.function != nil {
				y := out(t, tensor.F64, rows...)
				run(t, tt.function, activation.ActivationArgs{Input: x, Output: y})
				want(t, y, append(tt.y, tt.y...)...)

				dx, dbias := out(t, tensor.F64, rows...), out(t, tensor.F64, n)
				run(t, tt.gradient, activation.DActivationArgs{Grad: grad, FwdInput: x, Output: dx})
				want(t, dx, times(2, append(tt.dy, tt.dy...))...)
				run(t, tt.dbias, activation.DBiasDActivationArgs{Grad: grad, FwdInput: x, DBias: dbias, Output: dx})
				want(t, dx, times(2, append(tt.dy, tt.dy...))...)
				want(t, dbias, times(4, tt.dy)...)
			}
			// Rows [x, 5].
			wide, y, dx := f64(t, []int{1, 2 * n}, append(tt.x, constant(n, 5)...)...), out(t, tensor.F64, 1, n), out(t, tensor.F64, 1, 2*n)
			run(t, tt.gate, activation.ActivationArgs{Input: wide, Output: y})
			want(t, y, times(5, tt.y)...)
			run(t, tt.dgate, activation.DActivationArgs{Grad: f64(t, []int{1, n}, constant(n, 2)...), FwdInput: wide, Output: dx})
			want(t, dx, append(times(10, tt.dy), times(2, tt.y)...)...)
		})
	}
}

func constant(n int, v float64) []float64 { return times(v, ones(n)) }

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

func times(f float64, v []float64) []float64 {
	scaled := make([]float64, len(v))
	for i := range v {
		scaled[i] = f * v[i]
	}
	return scaled
}

func TestActivationsAtInfinity(t *testing.T) {
	t.Parallel()
	for _, op := range []*opregistry.Op[activation.ActivationArgs]{activation.GELU, activation.GELUErf, activation.QGELU, activation.SiLU, activation.ReLU, activation.SReLU} {
		y, low := out(t, tensor.F64, 2), nan
		if op == activation.ReLU || op == activation.SReLU {
			low = 0
		}
		run(t, op, activation.ActivationArgs{Input: f64(t, []int{2}, inf, -inf), Output: y})
		want(t, y, inf, low)
	}
	// The gradient is a product, whatever the derivative.
	dx := out(t, tensor.F64, 3)
	run(t, activation.DReLU, activation.DActivationArgs{Grad: f64(t, []int{3}, inf, nan, inf), FwdInput: f64(t, []int{3}, -1, -1, 1), Output: dx})
	want(t, dx, nan, nan, inf)
}

// The FlagOS plugin's reference returns Σ grad as the gradient of the bias.
func TestDBiasSum_UpstreamReturnsSumOfGrad(t *testing.T) {
	t.Parallel()
	a := activation.DBiasDActivationArgs{
		Grad: f64(t, []int{2, 2}, 10, 20, 30, 40), FwdInput: f64(t, []int{2, 2}, -1, 2, 3, -4),
		DBias: out(t, tensor.F64, 2), Output: out(t, tensor.F64, 2, 2),
	}
	run(t, activation.DBiasDReLU, a)
	want(t, a.Output, 0, 20, 30, 0)
	want(t, a.DBias, 30, 20)
}

func TestDBiasIsSummedBeforeRounding(t *testing.T) {
	t.Parallel()
	// dx is (1 + 2⁻⁷)² in each row, which bf16 does not hold.
	const n = 256
	v := constant(n, 1+0x1p-7)
	a := activation.DBiasDActivationArgs{
		Grad: of(t, tensor.BF16, []int{n, 1}, v...), FwdInput: of(t, tensor.BF16, []int{n, 1}, constant(n, 0.5+0x1p-8)...),
		DBias: out(t, tensor.F32, 1), Output: out(t, tensor.BF16, n, 1),
	}
	run(t, activation.DBiasDSReLU, a)
	want(t, a.DBias, n*(1+0x1p-7)*(1+0x1p-7))
	none := out(t, tensor.BF16, 0, 1)
	run(t, activation.DBiasDSReLU, activation.DBiasDActivationArgs{Grad: none, FwdInput: none, DBias: a.DBias, Output: none})
	want(t, a.DBias, 0)
}

func TestClampedSwiGLU(t *testing.T) {
	t.Parallel()
	slope := ln3 / 1.702
	tests := []struct {
		name                 string
		limit, alpha, offset opregistry.OptionalFloat
		a, b                 float64
		y, da, db            float64 // for dy = 2
	}{
		{name: "defaults", a: slope, b: 2, y: 0.75 * slope * 3, da: 2 * 3 * (0.75 + ln3*3/16), db: 2 * 0.75 * slope},
		{name: "constants", limit: opregistry.Float(4), alpha: opregistry.Float(1), offset: opregistry.Float(-1), a: -ln3, b: 3, y: -0.25 * ln3 * 2, da: 2 * 2 * (0.25 - ln3*3/16), db: -2 * 0.25 * ln3},
		{name: "at the limits", alpha: opregistry.Float(0), a: 7, b: 7, y: 7 * 0.5 * 8, da: 2 * 8 * 0.5, db: 2 * 3.5},
		{name: "at the lower limit", alpha: opregistry.Float(0), a: -7, b: -7, y: -7 * 0.5 * -6, da: 2 * -6 * 0.5, db: 2 * -3.5},
		{name: "beyond the limits", alpha: opregistry.Float(0), a: 8, b: 9, y: 7 * 0.5 * 8},
		{name: "below the lower limit", alpha: opregistry.Float(0), a: -8, b: -9, y: -8 * 0.5 * -6, da: 2 * -6 * 0.5},
		{name: "a is nan", a: nan, b: 1, y: nan, da: nan, db: nan},
		{name: "b is nan", alpha: opregistry.Float(0), a: 2, b: nan, y: nan, da: nan, db: 2 * 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x, y, dx := f64(t, []int{1, 2}, tt.a, tt.b), out(t, tensor.F64, 1, 1), out(t, tensor.F64, 1, 2)
			run(t, activation.ClampedSwiGLU, activation.ClampedSwiGLUArgs{Input: x, Output: y, Limit: tt.limit, Alpha: tt.alpha, GLULinearOffset: tt.offset})
			want(t, y, tt.y)
			run(t, activation.ClampedDSwiGLU, activation.ClampedDSwiGLUArgs{
				Grad: f64(t, []int{1, 1}, 2), FwdInput: x, Output: dx, Limit: tt.limit, Alpha: tt.alpha, GLULinearOffset: tt.offset,
			})
			want(t, dx, tt.da, tt.db)
		})
	}
}

func TestSoftcap(t *testing.T) {
	t.Parallel()
	x := f64(t, []int{5}, 0, 2*math.Atanh(0.5), -2*math.Atanh(0.25), inf, nan)
	y, dx := out(t, tensor.F64, 5), out(t, tensor.F64, 5)
	run(t, activation.Softcap, activation.SoftcapArgs{Input: x, Output: y, Limit: 2})
	want(t, y, 0, 1, -0.5, 2, nan)
	run(t, activation.DSoftcap, activation.DSoftcapArgs{Grad: f64(t, []int{5}, 1, 1, 2, 3, 1), FwdInput: x, Output: dx, Limit: 2})
	want(t, dx, 1, 0.75, 2*0.9375, 0, nan)
}
