package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
)

type dequantization struct {
	host.Cut
	exec   *opregistry.Exec
	f      *fp8.Format
	in     side
	out    host.Matrix
	block  int // of a row; 0 for one scale
	height int // rows that share scales
	inv    []float32
}

var dequantizeKernel = parallel.NewKernel((*dequantization).part)

// dequantize implements quant.Dequantize for data by rows.
func dequantize(e *opregistry.Exec, a quant.DequantizeArgs) error {
	var v host.Views
	switch {
	case a.Scaling == quant.NVFP4Scaling:
		v.Decline("nvfp4 scaling, this impl serves the scalings of fp8")
	case a.Input.Data == nil:
		v.Decline("only data by columns, this impl serves data by rows")
	}
	if v.Err != nil {
		return v.Err
	}
	c := dequantization{exec: e, f: formatOf(a.Input.Data.DType()), out: v.Matrix("output", a.Output), block: a.Scaling.BlockLen(), height: 1}
	c.in = newSide(&v, "input.data", a.Input.Data, "input.scale_inv", a.Input.ScaleInv, c.block)
	if c.block == 0 {
		c.inv = v.Vector("input.scale_inv", a.Input.ScaleInv)
	}
	if a.Block2D {
		c.height = c.block
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.out.Rows, c.out.Cols)
	dequantizeKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *dequantization) part(part int) {
	lo, hi := c.Bounds(part)
	buf := c.exec.Scratch(2 * pieceLen)
	for r := lo; r < hi; r++ {
		for col := 0; col < c.out.Cols; col += pieceLen {
			n := min(pieceLen, c.out.Cols-col)
			to := c.out.Place(r, col, n, buf)
			inv, block := c.scales(r/c.height, col, n, buf[pieceLen:])
			c.f.Decode(to, c.in.data.Piece(r, col, n), inv, block)
			c.out.Settle(r, col, to)
		}
	}
	c.exec.Release(buf)
}

// scales returns the scales of n elements of a row and how many elements each is for.
func (c *dequantization) scales(row, col, n int, buf []float32) (inv []float32, block int) {
	if c.block == 0 {
		return c.inv, n
	}
	first, count := col/c.block, (n+c.block-1)/c.block
	if c.in.codes.Data == nil {
		return c.in.scales.Piece(row, first, count, nil), c.block
	}
	for i, code := range c.in.codes.Piece(row, first, count) {
		buf[i] = powerOf(code)
	}
	return buf[:count], c.block
}
