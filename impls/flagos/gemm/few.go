package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
)

// fewRows is the number of rows of left up to which a product is computed as dot products, without
// packing right: packing takes as long as three of them.
const fewRows = 3

var gemmFewKernel = parallel.NewKernel((*blocked).fewPart)

// few reports whether a product has few rows and both operands are dense along the inner axis.
func (g *blocked) few() bool {
	return g.m <= fewRows && g.left.ColStep == 1 && g.right.RowStep == 1
}

// runFew computes the product of few rows; a part owns some columns of c.
func (g blocked) runFew() {
	g.colParts = min(max(g.m*g.n*g.k/host.Grain, 1), g.n, host.MaxParts)
	gemmFewKernel.Run(g.exec.Pool(), g.colParts, g)
}

func (g *blocked) fewPart(part int) {
	lo, hi := parallel.Split(g.n, g.colParts, part)
	lines := g.exec.Scratch((g.m + 1) * g.k)
	defer g.exec.Release(lines)
	t := g.target(g.m, lo, hi)
	t.move(0)
	var rows [fewRows][]float32
	for i := range g.m {
		rows[i] = g.left.WidenedRow(i, lines[i*g.k:][:g.k])
	}
	columns := g.right.Transposed()
	for j := lo; j < hi; j++ {
		column := columns.WidenedRow(j, lines[g.m*g.k:][:g.k])
		for i := range g.m {
			to := &t.at(i, j)[0]
			product := g.alpha * vector.Dot(rows[i], column)
			if g.beta != 0 {
				product += g.beta * *to
			}
			*to = product
		}
	}
	g.epilogue.finish(t, 0, g.m)
	t.release()
}
