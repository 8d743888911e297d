package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// pieceLen is how many elements of a row are processed at a time: a few pages, which the
// first-level cache holds between two passes.
const pieceLen = 4096

// pieces cuts the rows of a matrix into pieces of at most pieceLen elements; rows without gaps are
// cut as one.
type pieces struct {
	host.Cut
	exec *opregistry.Exec
	host.Matrix
	perRow int
}

func piecesOf(e *opregistry.Exec, m host.Matrix) pieces {
	if m.Dense() {
		m.Rows, m.Cols = 1, m.Rows*m.Cols
	}
	p := pieces{exec: e, Matrix: m, perRow: (m.Cols + pieceLen - 1) / pieceLen}
	p.Cut = host.CutItems(m.Rows*p.perRow, pieceLen)
	return p
}

// bounds returns the row, the first column and the length of a piece.
func (p *pieces) bounds(i int) (row, col, n int) {
	row, col = i/p.perRow, i%p.perRow*pieceLen
	return row, col, min(pieceLen, p.Cols-col)
}

type amax struct {
	pieces
	largest []float32 // of each part
}

var amaxKernel = parallel.NewKernel((*amax).part)

// amaxOf returns the largest magnitude of a matrix, as quant.ComputeAmax defines it. Scratch: one
// number per part.
func amaxOf(e *opregistry.Exec, m host.Matrix) float32 {
	c := amax{pieces: piecesOf(e, m)}
	c.largest = e.Scratch(c.Parts)
	amaxKernel.Run(e.Pool(), c.Parts, c)
	largest := fp8.Amax(c.largest)
	e.Release(c.largest)
	return largest
}

func (c *amax) part(part int) {
	lo, hi := c.Bounds(part)
	buf := c.exec.Scratch(pieceLen)
	largest := float32(0)
	for i := lo; i < hi; i++ {
		row, col, n := c.bounds(i)
		done := 0
		if c.DType() == tensor.BF16 {
			var a float32
			done, a = fp8.AmaxBF16(c.Bits()[row*c.Pitch+col:][:n])
			largest = max(largest, a)
		}
		if done < n {
			largest = max(largest, fp8.Amax(c.Piece(row, col+done, n-done, buf)))
		}
	}
	c.largest[part] = largest
	c.exec.Release(buf)
}

// computeAmax implements quant.ComputeAmax.
func computeAmax(e *opregistry.Exec, a quant.ComputeAmaxArgs) error {
	var v host.Views
	x, out := v.Matrix("input", a.Input), v.Vector("amax", a.Amax)
	if v.Err != nil {
		return v.Err
	}
	out[0] = amaxOf(e, x)
	return nil
}
