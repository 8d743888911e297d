package host

import "github.com/primus-fl/primus/internal/parallel"

const (
	// Grain is the number of elements that make a part worthwhile: a few microseconds of work,
	// compared with one microsecond to hand it to a worker.
	Grain = 1 << 14

	// MaxParts bounds the parts of an op: enough for even shares of any host.
	MaxParts = 128
)

// Cut says into how many parts a number of items is cut. It depends only on the shape of an op,
// never on the workers.
type Cut struct{ items, Parts int }

// CutItems cuts items of this many elements each.
func CutItems(items, size int) Cut { return CutAtMost(items, size, MaxParts) }

// CutAtMost is CutItems for another bound than MaxParts.
func CutAtMost(items, size, parts int) Cut {
	return Cut{items: items, Parts: min(max(items*size/Grain, 1), items, parts)}
}

// Bounds returns the items of a part.
func (c Cut) Bounds(part int) (lo, hi int) { return parallel.Split(c.items, c.Parts, part) }
