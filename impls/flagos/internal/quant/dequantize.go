package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
)

// dequantization is a quantised matrix, cut into tiles whose scales are one row.
type dequantization struct {
	host.Cut
	exec          *opregistry.Exec
	f             *fp8.Format
	in            side
	out           host.Matrix
	scaling       quant.Scaling
	square        bool
	byColumns     bool      // in is data by columns
	inv           []float32 // of the tensor
	height, width int       // of a tile
	across        int       // tiles across the matrix
}

// dequantizedRows is the height of the tiles of a transposed matrix with one scale. Tiles are as
// wide as can be: rows of the result that lie a power of two apart displace one another from a
// cache unless they are written whole.
const dequantizedRows = 128

var dequantizeKernel = parallel.NewKernel((*dequantization).part)

// dequantize implements quant.Dequantize. Scratch: two rows, and a tile of bytes, per part.
func dequantize(e *opregistry.Exec, a quant.DequantizeArgs) error {
	var v host.Views
	c := dequantization{exec: e, out: v.Matrix("output", a.Output), scaling: a.Scaling, square: a.Block2D, height: 1, width: pieceLen}
	data, scales, b := a.Input.Data, a.Input.ScaleInv, a.Scaling.BlockLen()
	if c.byColumns = data == nil; c.byColumns {
		data = a.Input.ColumnwiseData
		if b > 0 {
			scales = a.Input.ColumnwiseScaleInv
		}
		if c.height = b; b == 0 {
			c.height = dequantizedRows
		}
	}
	c.f, c.in = host.FP8Format(data.DType()), newSide(&v, "input.data", data, "input.scale_inv", scales, b)
	amax := float32(0)
	switch {
	case b == 0:
		c.inv = v.Vector("input.scale_inv", scales)
	case a.Scaling == quant.NVFP4Scaling:
		amax = v.Number("input.amax", a.Input.Amax)
	}
	if v.Err != nil {
		return v.Err
	}
	if a.Scaling == quant.NVFP4Scaling {
		c.runFP4(amax)
		return nil
	}
	if !c.byColumns && !c.square {
		c.in.flatten(&c.out, b)
	}
	c.width = max(min(c.width, c.out.Cols), 1)
	c.across = (c.out.Cols + c.width - 1) / c.width
	c.Cut = host.CutItems((c.out.Rows+c.height-1)/c.height*c.across, c.height*min(c.width, c.out.Cols))
	dequantizeKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *dequantization) part(part int) {
	lo, hi := c.Bounds(part)
	size := 0
	if c.turns() {
		size = c.height * (c.width + linePad) / 4
	}
	buf := c.exec.Scratch(2*c.width + size)
	row, scales := buf[:c.width], buf[c.width:][:c.width]
	turned := host.Bytes{Data: host.ScratchBytes(buf[2*c.width:]), Pitch: c.width + linePad}
	for i := lo; i < hi; i++ {
		first, col := i/c.across*c.height, i%c.across*c.width
		height, width := min(c.height, c.out.Rows-first), min(c.width, c.out.Cols-col)
		data := c.in.data
		if c.turns() {
			fp8.Transpose(turned.Data, turned.Pitch, data.Data[col*data.Pitch+first:], data.Pitch, width, height)
			data = turned
		} else {
			data.Data = data.Data[first*data.Pitch+col:]
		}
		inv, block := c.scales(first, col, width, scales)
		for r := range height {
			to := c.out.Place(first+r, col, width, row)
			if block == 1 {
				c.f.DecodeEach(to, data.Piece(r, 0, width), inv)
			} else {
				c.f.Decode(to, data.Piece(r, 0, width), inv, block)
			}
			c.out.Settle(first+r, col, to)
		}
	}
	c.exec.Release(buf)
}

// turns reports whether the data is the transpose of the matrix.
func (c *dequantization) turns() bool { return c.byColumns && c.scaling != quant.MXFP8Scaling }

// scales returns the scales of n elements of a row and how many elements each is for.
func (c *dequantization) scales(row, col, n int, buf []float32) (inv []float32, block int) {
	b := c.scaling.BlockLen()
	if b == 0 {
		return c.inv, n
	}
	down, count := c.height, n // of a block
	if !c.byColumns || c.square {
		down, col, count = 1, col/b, (n+b-1)/b
	}
	if c.square {
		down = b
	}
	row /= down
	switch {
	case c.scaling == quant.MXFP8Scaling:
		inv = buf[:count]
		fp8.DecodeE8M0(inv, c.in.codes.Piece(row, col, count))
	case c.byColumns:
		for i := range count {
			buf[i] = c.in.scales.Data[(col+i)*c.in.scales.Pitch+row]
		}
		inv = buf[:count]
	default:
		inv = c.in.scales.Piece(row, col, count, nil)
	}
	if count == n && c.byColumns && !c.square {
		return inv, 1
	}
	return inv, b
}
