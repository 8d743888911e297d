package flagos

import (
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
)

// fewRows is the number of rows of left up to which a product is computed as dot products, without
// packing right: packing takes as long as three of them.
const fewRows = 3

var gemmFewKernel = parallel.NewKernel((*gemm).fewPart)

// few reports whether a product has few rows and both operands are dense along the inner axis.
func (g *gemm) few() bool {
	return g.m <= fewRows && g.left.colStep == 1 && g.right.rowStep == 1
}

// runFew computes the product of few rows; a part owns some columns of c.
func (g gemm) runFew() {
	g.colParts = min(max(g.m*g.n*g.k/grain, 1), g.n, maxParts)
	gemmFewKernel.Run(g.exec.Pool(), g.colParts, g)
}

func (g *gemm) fewPart(part int) {
	lo, hi := parallel.Split(g.n, g.colParts, part)
	lines := g.exec.Scratch((g.m + 1) * g.k)
	defer g.exec.Release(lines)
	t := g.target(g.m, lo, hi)
	t.move(0)
	var rows [fewRows][]float32
	for i := range g.m {
		rows[i] = g.left.widenedRow(i, lines[i*g.k:][:g.k])
	}
	columns := g.right.transposed()
	for j := lo; j < hi; j++ {
		column := columns.widenedRow(j, lines[g.m*g.k:][:g.k])
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
