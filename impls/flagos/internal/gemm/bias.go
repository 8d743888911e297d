package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

// gradColumns is the number of columns that a part of a bias gradient adds up. gradRows is the
// number of rows that are summed before the sum is added to the total.
const (
	gradColumns = 64
	gradRows    = 64
)

// biasGrad adds up the rows of x.
type biasGrad struct {
	x   panel.Operand
	sum host.Matrix // a row
}

var biasGradKernel = parallel.NewKernel((*biasGrad).part)

// columnSums stores the sum over the rows of x, in f32, block by block of rows in ascending order.
func columnSums(e *opregistry.Exec, x panel.Operand, sum host.Matrix) {
	biasGradKernel.Run(e.Pool(), (x.Cols+gradColumns-1)/gradColumns, biasGrad{x: x, sum: sum})
}

func (c *biasGrad) part(part int) {
	var sumBuf, blockBuf, line [gradColumns]float32
	lo := part * gradColumns
	n := min(gradColumns, c.x.Cols-lo)
	sum, block := sumBuf[:n], blockBuf[:n]
	for r0 := 0; r0 < c.x.Rows; r0 += gradRows {
		clear(block)
		for r := r0; r < min(r0+gradRows, c.x.Rows); r++ {
			vector.Add(block, block, c.row(r, lo, line[:n]))
		}
		vector.Add(sum, sum, block)
	}
	c.sum.Put(0, lo, sum)
}

// row returns the elements of row r from column lo on. They are gathered in line where they are not
// adjacent f32.
func (c *biasGrad) row(r, lo int, line []float32) []float32 {
	at := r*c.x.RowStep + lo*c.x.ColStep
	if c.x.ColStep == 1 {
		return c.x.Piece(at, len(line), line)
	}
	for i := range line {
		line[i] = c.x.One(at + i*c.x.ColStep)
	}
	return line
}
