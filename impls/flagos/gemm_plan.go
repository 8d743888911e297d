package flagos

import "github.com/primus-fl/primus/internal/simd"

const (
	// gemmMaxDepth bounds the inner axis of a block: c is read and written again for
	// each, and a panel of right of this depth stays in a second-level cache.
	gemmMaxDepth = 512

	// gemmMaxBlock bounds the floats of a block of left, which passes each panel of
	// right: less than half of a second-level cache.
	gemmMaxBlock = 1 << 17

	// gemmMaxPanels bounds the floats of right that are packed at a time.
	gemmMaxPanels = 1 << 22

	// gemmGrain is the number of products and sums that are worth a part of their
	// own; gemmMaxParts bounds the parts.
	gemmGrain    = 1 << 22
	gemmMaxParts = 32
)

// gemmPlan says how a product is cut. It depends on the sizes and the kernel
// alone, never on the workers.
type gemmPlan struct {
	m, n, k   int
	depth     int // of a block of the inner axis, the last one may be less deep
	depths    int // blocks of the inner axis, at least 1
	blockRows int // rows of left that pass the panels of right at a time
	widest    int // columns of right that are packed at a time
	packParts int
	rowParts  int
	colParts  int
}

func planGemm(m, n, k int, kernel simd.Kernel) gemmPlan {
	p := gemmPlan{m: m, n: n, k: k}
	p.depths = max((k+gemmMaxDepth-1)/gemmMaxDepth, 1)
	p.depth = (k + p.depths - 1) / p.depths
	p.blockRows = max(gemmMaxBlock/max(p.depth, 1)/kernel.MR, 1) * kernel.MR
	p.widest = max(gemmMaxPanels/max(k, 1)/kernel.NR, 1) * kernel.NR
	width := min(n, p.widest)
	p.packParts = max(min(k*width/grain, maxParts), 1)
	p.rowParts, p.colParts = cutGemm((m+kernel.MR-1)/kernel.MR, (width+kernel.NR-1)/kernel.NR, min(m*width*k/gemmGrain, gemmMaxParts))
	return p
}

// gemmShares are the numbers of parts that an axis may be cut into.
var gemmShares = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}

// leftReload and rightReload are what a tile costs more when its operands come from
// the third-level cache, relative to the tile; parts of w columns of tiles pay the
// one for left in each w-th tile, parts of h rows the one for right in each h-th.
const (
	leftReload  = 0.9
	rightReload = 1.5
)

// cutGemm chooses into how many parts a product of this many whole and partial
// tiles is cut along each axis, about parts in all: so that the busier of two
// workers has least to do if all parts were as large as the largest.
func cutGemm(rowTiles, colTiles, parts int) (rowParts, colParts int) {
	rowParts, colParts = 1, 1
	if parts < 2 {
		return rowParts, colParts
	}
	best := 0.0
	for _, rows := range gemmShares {
		for _, cols := range gemmShares {
			if rows > rowTiles || cols > colTiles || rows*cols > parts || 2*rows*cols < parts {
				continue
			}
			high := (rowTiles + rows - 1) / rows
			wide := (colTiles + cols - 1) / cols
			pairs := (rows*cols + 1) / 2
			cost := float64(pairs*high*wide) * (1 + leftReload/float64(wide) + rightReload/float64(high))
			if best == 0 || cost < best {
				best, rowParts, colParts = cost, rows, cols
			}
		}
	}
	return rowParts, colParts
}
