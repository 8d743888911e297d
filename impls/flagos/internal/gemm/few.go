package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
)

// fewRows is the number of rows of left up to which a product is computed without packing right. In
// generation right is read from memory, which packing does twice; for eight rows both ways take
// equally long.
const fewRows = 8

// fewGrain is the number of products that make a part worthwhile.
const fewGrain = 4 * host.Grain

// fewWidth is the least number of columns of a part whose products are added step by step.
const fewWidth = 256

var (
	gemmFewKernel   = parallel.NewKernel((*blocked).fewPart)
	gemmStepsKernel = parallel.NewKernel((*blocked).stepsPart)
)

// few reports whether a product has few rows, and the rows of right^T or of right are dense.
func (g *blocked) few() bool {
	return g.m <= fewRows && g.left.ColStep == 1 && (g.right.RowStep == 1 || g.right.ColStep == 1 && g.k > 0)
}

// runFew computes the product of few rows; a part owns some columns of c.
func (g blocked) runFew() {
	if g.right.RowStep != 1 {
		g.colParts = min(max(g.m*g.n*g.k/fewGrain, 1), max(g.n/fewWidth, 1), host.MaxParts)
		gemmStepsKernel.Run(g.exec.Pool(), g.colParts, g)
		return
	}
	g.colParts = min(max(g.m*g.n*g.k/fewGrain, 1), g.n, host.MaxParts)
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
	if g.m == 1 && g.beta == 0 {
		to := t.at(0, lo)[:hi-lo]
		columns.TimesRows(to, rows[0], lo)
		if g.alpha != 1 {
			vector.Scale(g.alpha, to, to)
		}
	} else {
		g.fewColumns(&t, lo, hi, &rows, &columns, lines[g.m*g.k:])
	}
	g.epilogue.finish(t, 0, g.m)
	t.release()
}

// fewColumns computes columns of c, each for all rows. line is scratch for a column of right.
func (g *blocked) fewColumns(t *gemmTarget, lo, hi int, rows *[fewRows][]float32, columns *panel.Operand, line []float32) {
	for j := lo; j < hi; j++ {
		column := columns.WidenedRow(j, line[:g.k])
		for i := range g.m {
			to := &t.at(i, j)[0]
			product := g.alpha * vector.Dot(rows[i], column)
			if g.beta != 0 {
				product += g.beta * *to
			}
			*to = product
		}
	}
}

// stepsPart adds the products of each step of the inner axis to all columns of a part.
func (g *blocked) stepsPart(part int) {
	lo, hi := parallel.Split(g.n, g.colParts, part)
	width := hi - lo
	buf := g.exec.Scratch(g.m*g.k + (g.m+1)*width)
	defer g.exec.Release(buf)
	sums, line := buf[g.m*g.k:][:g.m*width], buf[g.m*g.k+g.m*width:]
	clear(sums)
	var rows [fewRows][]float32
	for i := range g.m {
		rows[i] = g.left.WidenedRow(i, buf[i*g.k:][:g.k])
	}
	for step := range g.k {
		values := g.right.Piece(step*g.right.RowStep+lo, width, line)
		for i := range g.m {
			vector.Axpy(rows[i][step], values, sums[i*width:][:width])
		}
	}
	t := g.target(g.m, lo, hi)
	t.move(0)
	for i := range g.m {
		to, sum := t.at(i, lo)[:width], sums[i*width:][:width]
		if g.beta == 0 {
			vector.Scale(g.alpha, to, sum)
			continue
		}
		vector.Scale(g.beta, to, to)
		vector.Axpy(g.alpha, sum, to)
	}
	g.epilogue.finish(t, 0, g.m)
	t.release()
}
