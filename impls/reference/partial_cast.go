package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// shard is a run of consecutive elements of a matrix with w columns.
type shard struct {
	v     []float64
	start int
	w     int
}

// place returns the row and the column of element i.
func (s shard) place(i int) (row, col int) { return (s.start + i) / s.w, (s.start + i) % s.w }

// amaxes stores the largest magnitude of each block that overlaps the shard, and 0 for the others.
func (s shard) amaxes(out *tensor.Tensor, g grid) error {
	m := newMatrix(out.Shape().Rows(), out.Shape().Cols())
	for i, x := range s.v {
		r, c := s.place(i)
		m.raise(r/g.height, c/g.width, x)
	}
	return out.SetFloat64s(m.v)
}

// cast stores each element times the scale of its block in fp8.
func (s shard) cast(out *tensor.Tensor, scale matrix, g grid) error {
	scaled := make([]float64, len(s.v))
	for i, x := range s.v {
		r, c := s.place(i)
		scaled[i] = saturated(x*scale.at(r/g.height, c/g.width), out.DType())
	}
	return out.SetFloat64s(scaled)
}

// partialAmax implements quant.FP8BlockScalingComputePartialAmax and
// quant.NVFP42DComputePartialAmax.
func partialAmax(a quant.PartialAmaxArgs) error {
	return shard{a.Tensor.Float64s(), a.StartOffset, a.W}.amaxes(a.Amax, grid{a.BlockLen, a.BlockLen})
}

// partialCast implements quant.FP8BlockScalingPartialCast.
func partialCast(a quant.PartialCastArgs) error {
	return shard{a.Inp.Float64s(), a.StartOffset, a.W}.cast(a.Out, matrixOf(a.Scale), grid{a.BlockLen, a.BlockLen})
}

// mxfp8PartialAmax implements quant.MXFP8ScalingComputePartialAmax.
func mxfp8PartialAmax(a quant.MXFP8PartialAmaxArgs) error {
	s := shard{a.Input.Float64s(), a.StartOffset, a.Cols}
	if err := s.amaxes(a.AmaxRowwise, grid{1, 32}); err != nil {
		return err
	}
	return s.amaxes(a.AmaxColwise, grid{32, 1})
}

// mxfp8PartialCast implements quant.MXFP8ScalingPartialCast.
func mxfp8PartialCast(a quant.MXFP8PartialCastArgs) error {
	s := shard{a.Input.Float64s(), a.StartOffset, a.Cols}
	if err := s.cast(a.OutputRowwise, e8m0Scales(a.ScaleInvRowwise), grid{1, 32}); err != nil {
		return err
	}
	return s.cast(a.OutputColwise, e8m0Scales(a.ScaleInvColwise), grid{32, 1})
}

// e8m0Scales returns the reciprocals of E8M0 decoding scales.
func e8m0Scales(t *tensor.Tensor) matrix {
	m := matrixOf(t)
	for i, code := range m.v {
		m.v[i] = 1 / float64(tensor.Float8E8M0(code).Float32())
	}
	return m
}

// nvfp4MultiTensorPartialAmax implements quant.NVFP4MultiTensorComputePartialAmax.
func nvfp4MultiTensorPartialAmax(a quant.NVFP4MultiTensorComputePartialAmaxArgs) error {
	for _, call := range a.Calls {
		if err := partialAmax(call.PartialAmaxArgs); err != nil {
			return err
		}
		if err := call.GlobalAmax.SetFloat64s([]float64{amaxOf(call.Tensor.Float64s())}); err != nil {
			return err
		}
	}
	return nil
}

// nvfp42DPartialCast implements quant.NVFP42DPartialCast.
func nvfp42DPartialCast(a quant.NVFP42DPartialCastArgs) error {
	s := shard{a.Inp.Float64s(), a.StartOffset, a.W}
	scale, global := matrixOf(a.Scale), number(a.GlobalScale)
	if !(global > 0) {
		global = 1
	}
	for i, decode := range scale.v {
		scale.v[i] = math.MaxFloat32
		if decode = e4m3(decode); decode > 0 {
			scale.v[i] = min(global/decode, math.MaxFloat32)
		}
	}
	out := make([]float64, a.Out.NumElements())
	if len(s.v)%2 != 0 {
		out[len(out)-1] = float64(uint8(a.Out.At(len(out)-1)) & 0xf0)
	}
	for i, x := range s.v {
		r, c := s.place(i)
		code := tensor.ToFloat4E2M1(x * scale.at(r/a.BlockLen, c/a.BlockLen))
		out[i/2] += float64(uint(code) << (i % 2 * 4))
	}
	return a.Out.SetFloat64s(out)
}

// nvfp4MultiTensor2DPartialCast implements quant.NVFP4MultiTensor2DPartialCast.
func nvfp4MultiTensor2DPartialCast(a quant.NVFP4MultiTensor2DPartialCastArgs) error {
	for _, call := range a.Calls {
		if err := nvfp42DPartialCast(call); err != nil {
			return err
		}
	}
	return nil
}
