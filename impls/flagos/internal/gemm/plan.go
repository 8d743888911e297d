package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	kernel "github.com/primus-fl/primus/internal/kernel/gemm"
)

const (
	// gemmMaxDepth bounds the inner axis of a block: c is read and written again for each block,
	// and a panel of right of this depth stays in a second-level cache.
	gemmMaxDepth = 512

	// gemmMaxBlock bounds the floats of a block of left, which is used with each panel of right: a
	// quarter of a second-level cache.
	gemmMaxBlock = 1 << 16

	// gemmMaxPanels bounds the floats of right that are packed for a pass. gemmMaxPass bounds those
	// of a pass over several blocks of the inner axis where one block would do: small passes would
	// spend their time waiting.
	gemmMaxPanels = 1 << 22
	gemmMaxPass   = 1 << 18

	// unpackedRows is the number of rows of left up to which right is read in place: to pack it
	// takes as long as a product with so many rows gains from it.
	unpackedRows = 384

	// pageFloats are the elements of 4 KiB. Rows that lie a multiple of it apart compete for the
	// same sets of a cache.
	pageFloats = 1 << 10

	// gemmGrain is the number of multiplications and additions that make a part worthwhile.
	gemmGrain = 1 << 22
)

// conflicting reports whether rows at this distance should be packed, because their elements of one
// column compete for the same sets of a cache.
func conflicting(step int) bool { return step%pageFloats == 0 }

// gemmPlan says how a product is cut. The blocks of the inner axis, on which the order of sums
// depends, follow from the sizes alone; how the rest is shared may depend on the workers.
type gemmPlan struct {
	m, n, k    int
	depth      int // of a block of the inner axis, at least 1; the last one may be less deep
	depths     int // blocks of the inner axis, at least 1
	blockRows  int // rows of left that are used with all panels of right at a time
	widest     int // columns of right in a pass
	passDepths int // blocks of the inner axis in a pass
	packParts  int
	rowParts   int
	colParts   int
}

// planGemm plans a product. inPasses says that c can keep sums between passes.
func planGemm(m, n, k int, kernel kernel.Kernel, workers int, inPasses bool) gemmPlan {
	p := gemmPlan{m: m, n: n, k: k}
	p.depths = max((k+gemmMaxDepth-1)/gemmMaxDepth, 1)
	p.depth = max((k+p.depths-1)/p.depths, 1)
	p.blockRows = max(gemmMaxBlock/p.depth/kernel.MR, 1) * kernel.MR
	p.passDepths = p.depths
	if inPasses {
		p.passDepths = min(max(gemmMaxPass/(p.depth*n), 1), p.depths)
	}
	steps := p.passDepths * p.depth
	p.widest = max(gemmMaxPanels/steps/kernel.NR, 1) * kernel.NR
	width := min(n, p.widest)
	p.packParts = max(min(steps*width/host.Grain, host.MaxParts), 1)
	rowTiles, colTiles := (m+kernel.MR-1)/kernel.MR, (width+kernel.NR-1)/kernel.NR
	most := min(max(m*width*steps/gemmGrain, 1), host.MaxParts)
	p.rowParts, p.colParts = cutGemm(rowTiles, colTiles, p.blockRows/kernel.MR, most, workers)
	return p
}

// gemmShares are the numbers of parts that an axis may be cut into.
var gemmShares = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}

// The costs of a part beyond its tiles, in tiles: leftLoad for each row of tiles and rightLoad for
// each column of tiles, to bring their operands into the cache; and unevenLoad for the last round
// of parts, in which workers wait for the slowest.
const (
	leftLoad   = 0.9
	rightLoad  = 0.5
	unevenLoad = 0.1
)

// cutGemm chooses into how many parts, at most the given number, a product of this many whole and
// partial tiles is cut along each axis. It minimises the work of the busiest worker, with all parts
// counted as large as the largest. Parts have blocks of blockTiles rows of tiles.
func cutGemm(rowTiles, colTiles, blockTiles, parts, workers int) (rowParts, colParts int) {
	best := 0.0
	for _, rows := range gemmShares {
		for _, cols := range gemmShares {
			if rows > rowTiles || cols > colTiles || rows*cols > parts {
				continue
			}
			high := (rowTiles + rows - 1) / rows
			wide := (colTiles + cols - 1) / cols
			turns := float64((rows*cols + workers - 1) / workers)
			cost := float64(high*wide) * (turns + unevenLoad) * (1 + leftLoad/float64(wide) + rightLoad/float64(min(high, blockTiles)))
			if best == 0 || cost < best {
				best, rowParts, colParts = cost, rows, cols
			}
		}
	}
	return rowParts, colParts
}
