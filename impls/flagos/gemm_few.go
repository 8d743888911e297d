package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
)

// fewRows is how many rows of left are multiplied as dot products, without packing
// right: packing it takes as long as three of them.
const fewRows = 3

var gemmFewKernel = parallel.NewKernel((*gemm).fewPart)

// few reports whether a product has few rows and both operands are dense along the
// inner axis.
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
	for j := lo; j < hi; j++ {
		column := g.right.transposed().row(j)
		for i := range g.m {
			to := &g.c[i*g.pitch+j]
			product := g.alpha * simd.Dot(g.left.row(i), column)
			if g.beta != 0 {
				product += g.beta * *to
			}
			*to = product
		}
	}
}
