package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
)

type transposition struct {
	host.Cut
	in, out host.Bytes
}

const transposedRows = 64 // of a part, at least: a cache line of the result

var transposeKernel = parallel.NewKernel((*transposition).part)

// fp8Transpose implements quant.FP8Transpose.
func fp8Transpose(e *opregistry.Exec, a quant.FP8TransposeArgs) error {
	var v host.Views
	c := transposition{in: v.Bytes("input", a.Input), out: v.Bytes("out", a.Out)}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems((c.in.Rows+transposedRows-1)/transposedRows, transposedRows*c.in.Cols)
	transposeKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *transposition) part(part int) {
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		r := i * transposedRows
		fp8.Transpose(c.out.Data[r:], c.out.Pitch, c.in.Data[r*c.in.Pitch:], c.in.Pitch, min(transposedRows, c.in.Rows-r), c.in.Cols)
	}
}
