package quant

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

var infinity = float32(math.Inf(1))

// scaleOf returns the scale of an amax, as quant.MultiTensorComputeScaleAndScaleInv defines it.
func scaleOf(amax, largest, epsilon float32, pow2 bool) float32 {
	if amax < epsilon {
		amax = epsilon
	}
	if amax == 0 || amax != amax || amax == infinity {
		return 1
	}
	scale := min(largest/amax, math.MaxFloat32)
	switch {
	case !pow2 || scale <= 0:
		return scale
	case scale >= 0x1p-126:
		return math.Float32frombits(math.Float32bits(scale) &^ (1<<23 - 1))
	}
	_, exp := math.Frexp(float64(scale))
	return float32(math.Ldexp(1, exp-1))
}

// Codes of E8M0, which are exponents of float32.
const (
	infiniteCode = 254
	nanCode      = 255
	halfTiny     = 1 << 22 // 2^−127 in float32
)

// codesOf stores the E8M0 code of the least power of two that is not below amax/largest for each
// amax, and replaces the amax by the reciprocal of that power. largest is a largest number of fp8,
// which is 1.75 times a power of two in either format.
func codesOf(codes []byte, amax []float32, largest float32) {
	const upTo = 0x600000 // the fraction of 1.75
	bias := int32(math.Float32bits(largest)>>23) - 127
	codes = codes[:len(amax)]
	for i, a := range amax {
		u := math.Float32bits(a)
		code := max(int32((u+(1<<23-1-upTo))>>23)-bias, 0)
		reciprocal := uint32(infiniteCode-code) << 23
		if u == 0x7f800000 {
			code, reciprocal = infiniteCode, halfTiny
		}
		codes[i], amax[i] = byte(code), math.Float32frombits(reciprocal)
	}
}

// powersOf stores the numbers of E8M0 codes.
func powersOf(dst []float32, codes []byte) {
	dst = dst[:len(codes)]
	for i, code := range codes {
		u := uint32(code) << 23
		switch code {
		case 0:
			u = halfTiny
		case nanCode:
			u = 0x7fc00000
		}
		dst[i] = math.Float32frombits(u)
	}
}

// multiTensorComputeScale implements quant.MultiTensorComputeScaleAndScaleInv.
func multiTensorComputeScale(_ *opregistry.Exec, a quant.MultiTensorComputeScaleAndScaleInvArgs) error {
	var v host.Views
	each := func(write bool) {
		for i, t := range a.TensorLists[0] {
			amax, scale, inv := v.Vector("amax", t), v.Vector("scale", a.TensorLists[1][i]), v.Vector("scale_inv", a.TensorLists[2][i])
			if !write || v.Err != nil {
				continue
			}
			for j, m := range amax {
				scale[j] = scaleOf(m, a.MaxFP8, a.Epsilon, a.ForcePow2Scales)
				inv[j] = 1 / scale[j]
			}
		}
	}
	each(false)
	each(true)
	return v.Err
}

// updateScales implements quant.FusedAmaxAndScaleUpdateAfterReduction.
func updateScales(_ *opregistry.Exec, a quant.FusedAmaxAndScaleUpdateArgs) error {
	var v host.Views
	buffer := v.Vector("amax_reduction_buffer", a.AmaxReductionBuffer)
	for i, h := range a.AmaxHistories {
		v.Vector("amax_histories", h)
		v.Vector("scales", a.Scales[i])
	}
	if v.Err != nil {
		return v.Err
	}
	limit := formatOf(a.FP8DType).Largest()
	scaled := float64(limit) * math.Exp2(-float64(a.Margin))
	for i, h := range a.AmaxHistories {
		n := h.Shape()[1]
		updateScalesOf(tensor.Data[float32](h), tensor.Data[float32](a.Scales[i]), buffer[:n], a.AmaxComputeAlgo, scaled)
		buffer = buffer[n:]
	}
	return nil
}

// updateScalesOf updates one history, which has a column for each scale.
func updateScalesOf(history, scales, buffer []float32, algo quant.AmaxComputeAlgo, limit float64) {
	n := len(scales)
	for col, last := range buffer {
		if last == 0 {
			last = history[col]
		}
		if last == 0 {
			continue
		}
		amax := last
		for at := col; at < len(history); at += n {
			v := last
			if at+n < len(history) {
				v = history[at+n]
			}
			if algo == quant.AmaxMax && (v > amax || amax != amax) {
				amax = v
			}
			history[at] = v
		}
		history[col] = 0
		if amax > 0 && amax != infinity {
			scales[col] = float32(min(limit/float64(amax), math.MaxFloat32))
		}
	}
}

// formatOf returns the format of an fp8 dtype.
func formatOf(d tensor.DType) *fp8.Format {
	if d == tensor.F8E5M2 {
		return &fp8.E5M2
	}
	return &fp8.E4M3
}
