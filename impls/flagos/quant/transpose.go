package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
)

// transposition is a matrix of bytes to transpose, cut into tiles.
type transposition struct {
	host.Cut
	exec          *opregistry.Exec
	in, out       host.Bytes
	height, width int // of a tile
	across        int // tiles across the matrix
}

// The largest tile, which is copied before it is transposed: rows that lie a power of two apart
// share a few places of a cache. Its rows and its columns have several cache lines each, because
// lines that lie that far apart are also slow to write one by one.
const (
	turnedRows = 256
	turnedCols = 512
)

var transposeKernel = parallel.NewKernel((*transposition).part)

// fp8Transpose implements quant.FP8Transpose. Scratch: a tile per part.
func fp8Transpose(e *opregistry.Exec, a quant.FP8TransposeArgs) error {
	var v host.Views
	c := transposition{exec: e, in: v.Bytes("input", a.Input), out: v.Bytes("out", a.Out)}
	if v.Err != nil {
		return v.Err
	}
	c.height, c.width = min(turnedRows, c.in.Rows), max(min(turnedCols, c.in.Cols), 1)
	c.across = (c.in.Cols + c.width - 1) / c.width
	c.Cut = host.CutItems((c.in.Rows+turnedRows-1)/turnedRows*c.across, c.height*c.width)
	transposeKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *transposition) part(part int) {
	lo, hi := c.Bounds(part)
	pitch := c.width + linePad
	buf := c.exec.Scratch((c.height*pitch + 3) / 4)
	tile := host.ScratchBytes(buf)
	for i := lo; i < hi; i++ {
		row, col := i/c.across*turnedRows, i%c.across*c.width
		height, width := min(c.height, c.in.Rows-row), min(c.width, c.in.Cols-col)
		for r := range height {
			copy(tile[r*pitch:], c.in.Piece(row+r, col, width))
		}
		fp8.Transpose(c.out.Data[col*c.out.Pitch+row:], c.out.Pitch, tile, pitch, height, width)
	}
	c.exec.Release(buf)
}
