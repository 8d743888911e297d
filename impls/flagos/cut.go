package flagos

import "github.com/primus-fl/primus/internal/parallel"

const (
	// grain is the number of elements that make a part worthwhile: a few microseconds of work,
	// compared with one microsecond to hand it to a worker.
	grain = 1 << 14

	// maxParts bounds the parts of an op: enough for even shares of any host.
	maxParts = 128
)

// cut says into how many parts a number of items is cut. It depends only on the shape of an op,
// never on the workers.
type cut struct{ items, parts int }

// cutItems cuts items of this many elements each.
func cutItems(items, size int) cut { return cutAtMost(items, size, maxParts) }

func cutAtMost(items, size, parts int) cut {
	return cut{items: items, parts: min(max(items*size/grain, 1), items, parts)}
}

// bounds returns the items of a part.
func (c cut) bounds(part int) (lo, hi int) { return parallel.Split(c.items, c.parts, part) }
