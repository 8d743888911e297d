package attention

import "github.com/primus-fl/primus/ops/attention"

// band says which keys a query of attention sees: those from left before its diagonal to right
// after it. The diagonal of query i is key i + offset.
type band struct{ left, right, offset int }

// bandOf combines the window of a call with what its mask type hides.
func bandOf(a attention.FusedAttnFwdArgs, d attention.AttnDims) band {
	b := band{}
	if a.BottomRight() {
		b.offset = d.SeqKV - d.SeqQ
	}
	all := d.SeqQ + d.SeqKV
	b.left, b.right = a.WindowSize.Bounds()
	if b.left < 0 || b.left > all {
		b.left = all
	}
	if b.right < 0 || b.right > all {
		b.right = all
	}
	if a.AttnMaskType.Causal() {
		b.right = 0
	}
	return b
}

// firstKey and visible return the first key that a query sees, and the end of those that it sees.
func (c *common) firstKey(query int) int { return c.key(query + c.offset - c.left) }

func (c *common) visible(query int) int { return c.key(query + c.offset + c.right + 1) }

func (c *common) key(at int) int { return min(max(at, 0), c.SeqKV) }

// firstQuery and lastQuery return the first query that sees a key, and the end of those that see
// it. The first may lie after all queries.
func (c *common) firstQuery(key int) int { return max(key-c.offset-c.right, 0) }

func (c *common) lastQuery(key int) int {
	return min(max(key-c.offset+c.left+1, 0), c.SeqQ)
}

// scoreBlock holds the scores of some queries and some keys. Each row has space for a tile of keys
// after the last one.
type scoreBlock struct {
	data       []float32
	pitch      int
	query, key int // the first of each
	rows, keys int
	more       bool // not the first block of these queries
}

func (s *scoreBlock) row(r int) []float32 { return s.data[r*s.pitch:][:s.pitch] }

// from and seen return the first key of the block that row r sees, and the end of those that it
// sees, counted from the block's first key.
func (c *common) from(s *scoreBlock, r int) int {
	return min(max(c.firstKey(s.query+r)-s.key, 0), s.keys)
}

func (c *common) seen(s *scoreBlock, r int) int {
	return min(max(c.visible(s.query+r)-s.key, 0), s.keys)
}

// sees returns the rows of the block that see any of the keys j to j+n: the first one and their
// end.
func (c *common) sees(s *scoreBlock, j, n int) (first, end int) {
	first = min(max(c.firstQuery(s.key+j)-s.query, 0), s.rows)
	end = min(max(c.lastQuery(s.key+j+n-1)-s.query, 0), s.rows)
	return first, end
}

// clearBeside clears the elements next to the keys that a row sees which the products of a tile
// also read.
func (c *common) clearBeside(row []float32, from, seen int) {
	clear(row[max(from-c.kernel.MR, 0):from])
	clear(row[seen : seen+c.kernel.MR])
}
