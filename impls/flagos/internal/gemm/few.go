package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
)

// fewRows is the number of rows of left up to which a product is computed without packing right. In
// generation right is read from memory, which packing does twice. A row of the result has the same
// bits beside any number of others up to this one.
const fewRows = 8

// fewGrain is the number of products that make a part worthwhile.
const fewGrain = 4 * host.Grain

// tileWidth is the least number of columns of a part that is computed in tiles.
const tileWidth = 8 * vector.TileY

// tileDepth is the length of the rows up to which those of a tile fit into a first-level cache.
const tileDepth = 1024

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

// tiled reports whether a product of few rows can be computed in tiles.
func (g *blocked) tiled() bool {
	vectors := vector.TileVector()
	return vectors > 0 && g.k > 0 && g.k <= tileDepth && g.k%vectors == 0 && g.m >= vector.TileX
}

// runFew computes the product of few rows; a part owns some columns of c.
func (g blocked) runFew() {
	if g.right.RowStep != 1 {
		g.colParts = min(max(g.m*g.n*g.k/fewGrain, 1), max(g.n/fewWidth, 1), host.MaxParts)
		gemmStepsKernel.Run(g.exec.Pool(), g.colParts, g)
		return
	}
	g.colParts = min(max(g.m*g.n*g.k/fewGrain, 1), g.n, host.MaxParts)
	if g.tiled() {
		g.colParts = min(g.colParts, max(g.n/tileWidth, 1))
	}
	gemmFewKernel.Run(g.exec.Pool(), g.colParts, g)
}

func (g *blocked) fewPart(part int) {
	lo, hi := parallel.Split(g.n, g.colParts, part)
	size := vector.TileY * g.k
	if g.left.Narrow() {
		size += g.m * g.k
	}
	buf := g.exec.Scratch(size)
	defer g.exec.Release(buf)
	rows, columns := g.left.Widened(buf[vector.TileY*g.k:]), g.right.Transposed()
	t := g.target(g.m, lo, hi)
	t.move(0)
	switch {
	case g.m == 1 && g.beta == 0:
		to := t.at(0, lo)[:hi-lo]
		columns.TimesRows(to, rows.Row(0), lo)
		if g.alpha != 1 {
			vector.Scale(g.alpha, to, to)
		}
	case hi-lo >= vector.TileY && g.tiled():
		g.tiles(&t, lo, hi, &rows, &columns, buf[:vector.TileY*g.k])
	default:
		g.dots(&t, lo, hi, &rows, &columns, buf[:g.k])
	}
	g.epilogue.finish(t, 0, g.m)
	t.release()
}

// dots computes columns of c one by one. line is scratch for a column of right.
func (g *blocked) dots(t *gemmTarget, lo, hi int, rows, columns *panel.Operand, line []float32) {
	for j := lo; j < hi; j++ {
		column := columns.WidenedRow(j, line)
		for i := range g.m {
			g.store(&t.at(i, j)[0], vector.Dot(rows.Row(i), column))
		}
	}
}

// tiles computes columns of c in tiles, with the bits of dots. The last tile of each axis begins so
// that it is whole, and stores what no tile before it has. lines is scratch for the columns of
// right of a tile.
func (g *blocked) tiles(t *gemmTarget, lo, hi int, rows, columns *panel.Operand, lines []float32) {
	var products vector.TileProducts
	var sums vector.TileSums
	for next := lo; next < hi; next += vector.TileY {
		col := min(next, hi-vector.TileY)
		y := columns.Block(col, vector.TileY).Widened(lines)
		for r := 0; r < g.m; r += vector.TileX {
			row := min(r, g.m-vector.TileX)
			vector.DotTile(&products, &sums, rows.Data[row*rows.RowStep:], rows.RowStep, y.Data, y.RowStep, g.k)
			for i := r - row; i < vector.TileX; i++ {
				to := t.at(row+i, col)[:vector.TileY]
				for j := next - col; j < vector.TileY; j++ {
					g.store(&to[j], products[vector.TileX*j+i])
				}
			}
		}
	}
}

// store stores an element of the product, or adds it to what is there.
func (g *blocked) store(to *float32, product float32) {
	product *= g.alpha
	if g.beta != 0 {
		product += g.beta * *to
	}
	*to = product
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
