package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// fp8Max returns the largest value of an fp8 dtype.
func fp8Max(d tensor.DType) float64 {
	if d == tensor.F8E5M2 {
		return 57344
	}
	return 448
}

// scaleOf implements quant.MultiTensorComputeScaleAndScaleInv for one amax. Rounding a
// quotient of two f32 from f64 to f32 is as if it had been rounded once.
func scaleOf(amax, largest, epsilon float64, pow2 bool) float64 {
	if amax < epsilon {
		amax = epsilon
	}
	if amax == 0 || !isFinite(amax) {
		return 1
	}
	scale := toF32(largest / amax)
	if math.IsInf(scale, 1) {
		scale = math.MaxFloat32
	}
	if pow2 && scale > 0 {
		_, exp := math.Frexp(scale)
		scale = math.Ldexp(1, exp-1)
	}
	return scale
}

// multiTensorComputeScaleAndScaleInv implements quant.MultiTensorComputeScaleAndScaleInv.
func multiTensorComputeScaleAndScaleInv(a quant.MultiTensorComputeScaleAndScaleInvArgs) error {
	for i, t := range a.TensorLists[0] {
		scale := t.Float64s()
		inv := make([]float64, len(scale))
		for j, v := range scale {
			scale[j] = scaleOf(v, float64(a.MaxFP8), float64(a.Epsilon), a.ForcePow2Scales)
			inv[j] = 1 / scale[j]
		}
		if err := a.TensorLists[1][i].SetFloat64s(scale); err != nil {
			return err
		}
		if err := a.TensorLists[2][i].SetFloat64s(inv); err != nil {
			return err
		}
	}
	return nil
}

// multiTensorComputeScaleInvE8M0 implements quant.MultiTensorComputeScaleInvE8M0.
func multiTensorComputeScaleInvE8M0(a quant.MultiTensorComputeScaleInvE8M0Args) error {
	for i, t := range a.TensorLists[0] {
		v := t.Float64s()
		for j := range v {
			v[j] = float64(tensor.CeilFloat8E8M0(v[j] / 448))
		}
		if err := a.TensorLists[1][i].SetFloat64s(v); err != nil {
			return err
		}
	}
	return nil
}

// computeAmax implements quant.ComputeAmax.
func computeAmax(a quant.ComputeAmaxArgs) error {
	return a.Amax.SetFloat64s([]float64{amaxOf(a.Input.Float64s())})
}

// fusedAmaxAndScaleUpdate implements quant.FusedAmaxAndScaleUpdateAfterReduction.
func fusedAmaxAndScaleUpdate(a quant.FusedAmaxAndScaleUpdateArgs) error {
	buffer := a.AmaxReductionBuffer.Float64s()
	scaledMax := fp8Max(a.FP8DType) * math.Exp2(-float64(a.Margin))
	for i, history := range a.AmaxHistories {
		h, scales := history.Float64s(), a.Scales[i].Float64s()
		n, length := history.Shape()[1], history.Shape()[0]
		for col := range n {
			last := buffer[0]
			buffer = buffer[1:]
			if last == 0 {
				last = h[col]
			}
			if last == 0 {
				continue
			}
			amax := last
			for row := range length {
				v := last
				if row+1 < length {
					v = h[(row+1)*n+col]
				}
				if a.AmaxComputeAlgo == quant.AmaxMax && (v > amax || math.IsNaN(amax)) {
					amax = v
				}
				h[row*n+col] = v
			}
			h[col] = 0
			if amax > 0 && isFinite(amax) {
				scales[col] = min(scaledMax/amax, math.MaxFloat32)
			}
		}
		if err := history.SetFloat64s(h); err != nil {
			return err
		}
		if err := a.Scales[i].SetFloat64s(scales); err != nil {
			return err
		}
	}
	return nil
}
