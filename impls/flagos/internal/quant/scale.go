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

const nanCode = 255 // of E8M0

// multiTensorComputeScaleE8M0 implements quant.MultiTensorComputeScaleInvE8M0.
func multiTensorComputeScaleE8M0(e *opregistry.Exec, a quant.MultiTensorComputeScaleInvE8M0Args) error {
	var v host.Views
	for i, t := range a.TensorLists[0] {
		v.Flat("amax", t)
		v.Bytes("scale_inv", a.TensorLists[1][i])
		v.Dense("scale_inv", a.TensorLists[1][i])
	}
	if v.Err != nil {
		return v.Err
	}
	buf := e.Scratch(pieceLen)
	for i, t := range a.TensorLists[0] {
		amax, codes := v.Flat("amax", t), v.Bytes("scale_inv", a.TensorLists[1][i]).Data
		for col := 0; col < amax.Cols; col += pieceLen {
			x := amax.Piece(0, col, min(pieceLen, amax.Cols-col), buf)
			to := codes[col:][:len(x)]
			for j, m := range x {
				if to[j] = nanCode; m == m {
					fp8.E4M3.EncodeE8M0(to[j:j+1], []float32{max(m, 0)})
				}
			}
		}
	}
	e.Release(buf)
	return nil
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
				scale[j] = fp8.ScaleOf(m, a.MaxFP8, a.Epsilon, a.ForcePow2Scales)
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
	limit := host.FP8Format(a.FP8DType).Largest()
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
