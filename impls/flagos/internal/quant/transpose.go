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
	in, out       host.Bytes
	height, width int // of a tile
	across        int // tiles across the matrix
}

// The largest tile. Its rows and its columns have several cache lines each, because lines that lie
// a power of two apart share a few places of a cache.
const (
	turnedRows = 512
	turnedCols = 1024
)

// streamed is how many bytes of a result no cache is taken to hold.
const streamed = 32 << 20

var transposeKernel = parallel.NewKernel((*transposition).part)

// fp8Transpose implements quant.FP8Transpose.
func fp8Transpose(e *opregistry.Exec, a quant.FP8TransposeArgs) error {
	var v host.Views
	in, out := v.Bytes("input", a.Input), v.Bytes("out", a.Out)
	if v.Err != nil {
		return v.Err
	}
	transposeBytes(e, in, out)
	return nil
}

// transposeBytes stores the transpose of a matrix.
func transposeBytes(e *opregistry.Exec, in, out host.Bytes) {
	c := transposition{in: in, out: out}
	c.height, c.width = min(turnedRows, c.in.Rows), max(min(turnedCols, c.in.Cols), 1)
	c.across = (c.in.Cols + c.width - 1) / c.width
	c.Cut = host.CutItems((c.in.Rows+turnedRows-1)/turnedRows*c.across, c.height*c.width)
	transposeKernel.Run(e.Pool(), c.Parts, c)
}

func (c *transposition) part(part int) {
	lo, hi := c.Bounds(part)
	transpose := fp8.Transpose
	if c.out.Rows*c.out.Cols >= streamed {
		transpose = fp8.TransposeToMemory
	}
	for i := lo; i < hi; i++ {
		row, col := i/c.across*turnedRows, i%c.across*c.width
		height, width := min(c.height, c.in.Rows-row), min(c.width, c.in.Cols-col)
		transpose(c.out.Data[col*c.out.Pitch+row:], c.out.Pitch, c.in.Data[row*c.in.Pitch+col:], c.in.Pitch, height, width)
	}
}
