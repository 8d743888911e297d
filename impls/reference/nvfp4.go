package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// globalScale implements quant.NVFP4ComputeGlobalScale for one amax.
func globalScale(amax float64) float64 {
	if !(amax > 0) {
		return 1
	}
	return toF32(min(2688/amax, math.MaxFloat32))
}

// nvfp4ComputeGlobalScale implements quant.NVFP4ComputeGlobalScale.
func nvfp4ComputeGlobalScale(a quant.NVFP4ComputeGlobalScaleArgs) error {
	v := a.GlobalAmaxes.Float64s()
	for i := range v {
		v[i] = globalScale(v[i])
	}
	return a.GlobalScaleTensor.SetFloat64s(v)
}

// blockScales returns the decoding scales of quant.NVFP4ComputePerBlockScale.
func blockScales(blockAmax, globalAmax *tensor.Tensor) []float64 {
	v, s := blockAmax.Float64s(), globalScale(number(globalAmax))
	for i := range v {
		v[i] = min(v[i]/6*s, math.MaxFloat32)
	}
	return v
}

// nvfp4ComputePerBlockScale implements quant.NVFP4ComputePerBlockScale.
func nvfp4ComputePerBlockScale(a quant.NVFP4ComputePerBlockScaleArgs) error {
	return a.Scale.SetFloat64s(blockScales(a.BlockAmax, a.GlobalAmax))
}

// nvfp4ExpandScaleToFP8 implements quant.NVFP4ExpandScaleToFP8.
func nvfp4ExpandScaleToFP8(a quant.NVFP4ExpandScaleToFP8Args) error {
	return expand(a.Output, matrixOf(a.Input), a.BlockLen)
}

func expand(out *tensor.Tensor, tiles matrix, blockLen int) error {
	rows := newMatrix(out.Shape()[0], out.Shape()[1])
	for r := range rows.rows {
		for c := range rows.cols {
			if r/blockLen < tiles.rows {
				rows.set(r, c, saturated(tiles.at(r/blockLen, c), tensor.F8E4M3))
			}
		}
	}
	return out.SetFloat64s(rows.v)
}

// nvfp4FusedScale implements quant.NVFP4FusedScale.
func nvfp4FusedScale(a quant.NVFP4FusedScaleArgs) error {
	if err := a.PerBlockScale.SetFloat64s(blockScales(a.BlockAmax, a.GlobalAmax)); err != nil {
		return err
	}
	if err := expand(a.TargetScale, matrixOf(a.PerBlockScale), a.BlockLen); err != nil {
		return err
	}
	return a.TargetAmax.SetFloat64s(a.GlobalAmax.Float64s())
}

// nvfp4MultiTensorFusedScale implements quant.NVFP4MultiTensorFusedScale.
func nvfp4MultiTensorFusedScale(a quant.NVFP4MultiTensorFusedScaleArgs) error {
	for _, call := range a.Calls {
		if err := nvfp4FusedScale(call); err != nil {
			return err
		}
	}
	return nil
}
