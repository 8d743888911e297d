package reference

import (
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// dense returns a contiguous copy of a tensor bit for bit.
func dense(t *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := tensor.FromBytes(make([]byte, t.NumElements()*t.DType().Size()), t.DType(), t.Shape()...)
	if err != nil {
		return nil, err
	}
	return out, out.CopyFrom(t)
}

// fp8Transpose implements quant.FP8Transpose.
func fp8Transpose(a quant.FP8TransposeArgs) error {
	s := a.Input.Shape()
	in, err := dense(a.Input)
	if err != nil {
		return err
	}
	if in, err = in.Reshape(s.Rows(), s.Cols()); err != nil {
		return err
	}
	if in, err = in.Transpose(0, 1); err != nil {
		return err
	}
	if in, err = dense(in); err != nil {
		return err
	}
	if in, err = in.Reshape(a.Out.Shape()...); err != nil {
		return err
	}
	return a.Out.CopyFrom(in)
}

// swapFirstDims implements quant.SwapFirstDims.
func swapFirstDims(a quant.SwapFirstDimsArgs) error {
	in, err := a.Tensor.Transpose(0, 1)
	if err != nil {
		return err
	}
	return a.Out.CopyFrom(in)
}

// nvfp4DataTranspose implements quant.NVFP4DataTranspose.
func nvfp4DataTranspose(a quant.NVFP4DataTransposeArgs) error {
	return transposePacked(a.Out, a.Input)
}

func transposePacked(out, in *tensor.Tensor) error {
	from := matrixOf(in)
	to := newMatrix(2*from.cols, from.rows/2)
	for r := range from.rows {
		for c := range 2 * from.cols {
			half := uint8(from.at(r, c/2)) >> (c % 2 * 4) & 15
			to.set(c, r/2, to.at(c, r/2)+float64(half<<(r%2*4)))
		}
	}
	return out.SetFloat64s(to.v)
}

// nvfp42DMultiTensorTranspose implements quant.NVFP42DMultiTensorTranspose.
func nvfp42DMultiTensorTranspose(a quant.NVFP42DMultiTensorTransposeArgs) error {
	for i, data := range a.RowwiseDataList {
		if err := transposePacked(a.ColumnwiseDataList[i], data); err != nil {
			return err
		}
		if err := transposeTileScales(a.ColumnwiseScaleInvList[i], a.RowwiseScaleInvList[i]); err != nil {
			return err
		}
	}
	return nil
}

func transposeTileScales(out, in *tensor.Tensor) error {
	from := matrixOf(in)
	to := newMatrix(out.Shape()[0], out.Shape()[1])
	for r := range to.rows {
		for tile := range to.cols {
			if r/16 < from.cols {
				to.set(r, tile, from.at(16*tile, r/16))
			}
		}
	}
	return out.SetFloat64s(to.v)
}

// splitsToOffsets implements quant.SplitsToOffsets.
func splitsToOffsets(a quant.SplitsToOffsetsArgs) error {
	out := tensor.Data[int64](a.Output)
	stride := a.Output.Strides()[0]
	out[0] = 0
	for i, n := range a.FirstDims {
		out[(i+1)*stride] = out[i*stride] + int64(n)*int64(a.LogicalLastDim)
	}
	return nil
}
