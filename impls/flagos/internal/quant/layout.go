package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// swapFirstDims implements quant.SwapFirstDims.
func swapFirstDims(e *opregistry.Exec, a quant.SwapFirstDimsArgs) error {
	var v host.Views
	shape, to, from := a.Tensor.Shape(), a.Out.Strides(), a.Tensor.Strides()
	if len(shape) > host.CopyAxes {
		v.Decline("%d axes of tensor, this impl serves %d", len(shape), host.CopyAxes)
	}
	c := v.Copy("out", a.Out, "tensor", a.Tensor)
	if v.Err != nil {
		return v.Err
	}
	c = c.Along(shape[1], to[0], from[1]).Along(shape[0], to[1], from[0])
	for axis := 2; axis < len(shape); axis++ {
		c = c.Along(shape[axis], to[axis], from[axis])
	}
	c.Run(e)
	return nil
}

// splitsToOffsets implements quant.SplitsToOffsets.
func splitsToOffsets(_ *opregistry.Exec, a quant.SplitsToOffsetsArgs) error {
	var v host.Views
	out := v.Indexes("output", a.Output)
	if v.Err != nil {
		return v.Err
	}
	offset := 0
	for i, n := range a.FirstDims {
		out.Set(i, offset)
		offset += n * a.LogicalLastDim
	}
	out.Set(len(a.FirstDims), offset)
	return nil
}

// nibbles is a transposition of a matrix of 4-bit elements, of which two adjacent ones share a
// byte. Its items are tiles of rows.
type nibbles struct {
	host.Cut
	in, out host.Bytes
}

// nibbleTile is how many rows and columns of bytes are transposed at a time: as many cache lines as
// the first-level cache holds with ease.
const nibbleTile = 64

var nibblesKernel = parallel.NewKernel((*nibbles).part)

// nvfp4DataTranspose implements quant.NVFP4DataTranspose.
func nvfp4DataTranspose(e *opregistry.Exec, a quant.NVFP4DataTransposeArgs) error {
	var v host.Views
	in, out := v.Bytes("input", a.Input), v.Bytes("out", a.Out)
	if v.Err != nil {
		return v.Err
	}
	transposeNibbles(e, in, out)
	return nil
}

func transposeNibbles(e *opregistry.Exec, in, out host.Bytes) {
	c := nibbles{in: in, out: out}
	c.Cut = host.CutItems((in.Rows/2+nibbleTile-1)/nibbleTile, nibbleTile*in.Cols)
	nibblesKernel.Run(e.Pool(), c.Parts, c)
}

func (c *nibbles) part(part int) {
	lo, hi := c.Bounds(part)
	for row := lo * nibbleTile; row < min(hi*nibbleTile, c.in.Rows/2); row += nibbleTile {
		last := min(row+nibbleTile, c.in.Rows/2)
		for first := 0; first < c.in.Cols; first += nibbleTile {
			for col := first; col < min(first+nibbleTile, c.in.Cols); col++ {
				even, odd := c.out.Data[2*col*c.out.Pitch:], c.out.Data[(2*col+1)*c.out.Pitch:]
				for r := row; r < last; r++ {
					upper, lower := c.in.Data[2*r*c.in.Pitch+col], c.in.Data[(2*r+1)*c.in.Pitch+col]
					even[r], odd[r] = upper&15|lower<<4, upper>>4|lower&0xf0
				}
			}
		}
	}
}

// nvfp4TilesTranspose implements quant.NVFP42DMultiTensorTranspose.
func nvfp4TilesTranspose(e *opregistry.Exec, a quant.NVFP42DMultiTensorTransposeArgs) error {
	var v host.Views
	bytes := func(name string, list []*tensor.Tensor, i int) host.Bytes { return v.Bytes(name, list[i]) }
	for run := range 2 {
		for i := range a.RowwiseDataList {
			in, out := bytes("rowwise_data_list", a.RowwiseDataList, i), bytes("columnwise_data_list", a.ColumnwiseDataList, i)
			from, to := bytes("rowwise_scale_inv_list", a.RowwiseScaleInvList, i), bytes("columnwise_scale_inv_list", a.ColumnwiseScaleInvList, i)
			if v.Err != nil {
				return v.Err
			}
			if run == 1 {
				transposeNibbles(e, in, out)
				transposeTiles(from, to)
			}
		}
	}
	return nil
}

// nvfp4Tile is how many rows and columns have one scale.
const nvfp4Tile = 16

// transposeTiles stores the scales of square tiles, each repeated for the rows of its tile, for the
// transposed tiles.
func transposeTiles(from, to host.Bytes) {
	for j := range to.Rows {
		for t := range to.Cols {
			scale := byte(0)
			if j/nvfp4Tile < from.Cols {
				scale = from.Piece(nvfp4Tile*t, j/nvfp4Tile, 1)[0]
			}
			to.Piece(j, t, 1)[0] = scale
		}
	}
}
