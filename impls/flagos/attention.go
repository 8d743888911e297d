package flagos

import (
	"math"

	kernel "github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/opregistry"
	attentionops "github.com/primus-fl/primus/ops/attention"
)

func attentionImpls() []opregistry.Impl {
	return []opregistry.Impl{
		impl(attentionops.FusedAttnFwd, fusedAttnFwd),
		impl(attentionops.FusedAttnBwd, fusedAttnBwd),
	}
}

// keysMultiple divides the number of keys of every block of scores.
const keysMultiple = 256

// attention holds what forward and backward share. Only the scores for one block of queries and one
// block of keys exist at a time, as in Dao et al. 2022, arXiv:2205.14135.
type attention struct {
	attentionops.AttnDims
	band
	exec    *opregistry.Exec
	kernel  kernel.Kernel
	scale   float32
	q, k, v heads
	o       heads
	stats   []float32
	options attnOptions
}

// attention converts the operands of a forward call and requires sequences of one length.
func (v *views) attention(e *opregistry.Exec, a attentionops.FusedAttnFwdArgs) attention {
	switch {
	case a.AttnMaskType > attentionops.CausalBottomRightMask:
		v.decline("attn_mask_type %v, this impl serves no_mask, causal and causal_bottom_right", a.AttnMaskType)
	case a.MaxLogit != nil:
		v.decline("max_logit, this impl does not compute it")
	}
	if v.err != nil {
		return attention{}
	}
	c := attention{
		AttnDims: a.Dims(), exec: e, kernel: kernel.BestKernel(keysMultiple),
		q: v.heads("Q", a.Q, a.QKVFormat), k: v.heads("K", a.K, a.QKVFormat),
		v: v.heads("V", a.V, a.QKVFormat), o: v.heads("O", a.O, a.QKVFormat),
		stats: v.vector("stats", a.Stats),
	}
	c.band = bandOf(a, c.AttnDims)
	c.scale = a.AttnScale.Or(float32(1 / math.Sqrt(float64(c.DimQK))))
	c.options = v.attnOptions(a, c.scale)
	return c
}

// log returns the statistics of the queries of a head.
func (c *attention) log(sequence, head int) []float32 {
	return c.stats[(sequence*c.Heads+head)*c.SeqQ:][:c.SeqQ]
}

// steps returns the vectors of d elements of one head as the rows of a matrix.
func (h heads) steps(sequence, head, n, d int) gemmOperand {
	if n == 0 || d == 0 {
		return gemmOperand{rows: n, cols: d, rowStep: h.step, colStep: 1}
	}
	return gemmOperand{data: h.data[sequence*h.sequence+head*h.head:], rows: n, cols: d, rowStep: h.step, colStep: 1}
}

// scores stores scale · left · keys for the visible elements of the block. left has the rows of the
// block at a pitch; panels hold the keys of the whole head.
func (c *attention) scores(s *scoreBlock, left []float32, leftPitch, d int, panels []float32, scale float32) {
	mr, nr := c.kernel.MR, c.kernel.NR
	panel := d * nr
	t := kernel.Tile{ARow: leftPitch, AStep: 1, CRow: s.pitch, K: d, Alpha: scale}
	for r := 0; r < s.rows; r += mr {
		t.Rows = min(mr, s.rows-r)
		t.A = left[r*leftPitch:]
		first := c.from(s, r) / nr * nr
		c.row(&t, panels[(s.key+first)/nr*panel:], panel, s.data[r*s.pitch+first:], c.seen(s, r+t.Rows-1)-first)
	}
}

// timesKeys computes scale · block · right for the rows of dst, the first of which belongs to the
// block's first query. It stores the result, or adds it if this is not the first block of these
// queries. panels hold right, d columns, for all keys of the head.
func (c *attention) timesKeys(s *scoreBlock, panels []float32, d int, dst gemmOperand, scale float32) {
	if d == 0 {
		return
	}
	mr, nr := c.kernel.MR, c.kernel.NR
	t := kernel.Tile{ARow: s.pitch, AStep: 1, CRow: dst.rowStep, Alpha: scale}
	if s.more {
		t.Beta = 1
	}
	for r := 0; r < s.rows; r += mr {
		t.Rows = min(mr, s.rows-r)
		first := c.from(s, r)
		t.K = c.seen(s, r+t.Rows-1) - first
		if t.K == 0 && s.more {
			continue
		}
		t.A = s.data[r*s.pitch+first:]
		c.row(&t, panels[(s.key+first)*nr:], c.SeqKV*nr, dst.data[r*dst.rowStep:], d)
	}
}

// timesQueries adds scale · blockᵀ · right to the rows of dst that belong to the block's keys;
// panels hold right, d columns, for the queries of the block. With fresh, a tile of keys that no
// query before the block sees is stored as a whole instead.
func (c *attention) timesQueries(s *scoreBlock, panels []float32, d int, dst gemmOperand, scale float32, fresh bool) {
	if d == 0 {
		return
	}
	mr, nr := c.kernel.MR, c.kernel.NR
	t := kernel.Tile{ARow: 1, AStep: s.pitch, CRow: dst.rowStep, Alpha: scale}
	limit := min(bwdKeys, c.visible(c.SeqQ-1)-s.key)
	for j := 0; j < s.keys; j += mr {
		t.Rows = min(mr, limit-j)
		first, end := c.sees(s, j, t.Rows)
		if first == s.rows {
			return
		}
		if t.K = end - first; t.K <= 0 {
			continue
		}
		t.Beta = 1
		if fresh && c.firstQuery(s.key+j) >= s.query {
			t.Beta = 0
		}
		t.A = s.data[first*s.pitch+j:]
		c.row(&t, panels[first*nr:], s.rows*nr, dst.data[(s.key+j)*dst.rowStep:], d)
	}
}

// row runs a tile for each panel of a row of tiles of width columns.
func (c *attention) row(t *kernel.Tile, panels []float32, panel int, dst []float32, width int) {
	nr := c.kernel.NR
	for col := 0; col < width; col += nr {
		t.Cols = min(nr, width-col)
		t.B = panels[col/nr*panel:]
		t.C = dst[col:]
		c.kernel.Run(t)
	}
}

// prefetch brings up to some rows of x from r0 on into the cache.
func prefetch(x gemmOperand, r0, some int) {
	if rows := min(some, x.rows-r0); rows > 0 && x.cols > 0 {
		kernel.Prefetch(x.data[r0*x.rowStep:], x.rowStep, rows, x.cols)
	}
}

// copyRows copies rows of x from r0 on at a pitch; missing rows of the last tile become zero.
func (c *attention) copyRows(dst []float32, pitch int, x gemmOperand, r0, rows int) {
	x.packRows(dst, pitch, r0, rows, 0, x.cols, c.kernel.MR)
}
