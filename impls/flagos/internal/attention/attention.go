package attention

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	kernel "github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
)

// Impls returns the impls of the family.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(attention.FusedAttnFwd, fusedAttnFwd),
		host.Impl(attention.FusedAttnBwd, fusedAttnBwd),
		host.Impl(attention.CopyToKVCache, copyToKVCache),
		host.Impl(attention.GatedDeltaNetForward, gatedDeltaNet),
		host.WithAny(host.Impl(attention.FAPrepareFwd, faPrepareFwd)),
		host.WithAny(host.Impl(attention.FAPrepareBwd, faPrepareBwd)),
		host.WithAny(host.Impl(attention.ConvertTHDToBSHD, convertTHDToBSHD)),
		host.WithAny(host.Impl(attention.ConvertBSHDToTHD, convertBSHDToTHD)),
		host.WithAny(host.Impl(attention.THDGetPartitionedIndices, thdGetPartitionedIndices)),
		host.WithAny(host.Impl(attention.THDReadHalfTensor, thdReadHalfTensor)),
		host.WithAny(host.Impl(attention.THDReadSecondHalfLSE, thdReadSecondHalfLSE)),
		host.WithAny(host.Impl(attention.THDSecondHalfLSECorrection, thdSecondHalfLSECorrection)),
		host.Impl(attention.THDOutCorrection, thdOutCorrection),
		host.Impl(attention.THDGradCorrection, thdGradCorrection),
	}
}

// keysMultiple is a divisor of the number of keys of every block of scores.
const keysMultiple = 256

// common holds what forward and backward share. Only the scores for one block of queries and one
// block of keys exist at a time, as in Dao et al. 2022, arXiv:2205.14135.
type common struct {
	attention.AttnDims
	band
	exec    *opregistry.Exec
	kernel  kernel.Kernel
	scale   float32
	q, k, v host.Heads
	o       host.Heads
	stats   stats
	options attnOptions
	from0   int                // the sequence of the call that is sequence 0 here
	axes    attention.AttnDims // of the call, which number the random decisions of dropout
}

// stats are the statistics of the queries, at distances.
type stats struct {
	data                 []float32
	sequence, head, step int
}

// commonOf converts the operands of a forward call.
func commonOf(v *host.Views, e *opregistry.Exec, a attention.FusedAttnFwdArgs) common {
	switch padding := a.AttnMaskType.Padding(); {
	case a.AttnMaskType == attention.ArbitraryMask:
		v.Decline("attn_mask_type %v, this impl serves the others", a.AttnMaskType)
	case padding && a.Bias != nil:
		v.Decline("bias_type %v with attn_mask_type %v", a.BiasType, a.AttnMaskType)
	case padding && a.SoftmaxType == attention.LearnableSoftmax:
		v.Decline("softmax_type %v with attn_mask_type %v", a.SoftmaxType, a.AttnMaskType)
	case a.MaxLogit != nil:
		v.Decline("max_logit, this impl does not compute it")
	}
	if v.Err != nil {
		return common{}
	}
	c := common{
		AttnDims: a.Dims(), exec: e, kernel: kernel.BestKernel(keysMultiple),
		q: v.Heads("Q", a.Q, a.QKVFormat), k: v.Heads("K", a.K, a.QKVFormat),
		v: v.Heads("V", a.V, a.QKVFormat), o: v.Heads("O", a.O, a.QKVFormat),
		stats: statsOf(v, a),
	}
	c.axes = c.AttnDims
	c.band = bandOf(a, c.AttnDims)
	c.scale = a.AttnScale.Or(float32(1 / math.Sqrt(float64(c.DimQK))))
	c.options = optionsOf(v, a, c.scale)
	return c
}

func statsOf(v *host.Views, a attention.FusedAttnFwdArgs) stats {
	d := a.Dims()
	s := stats{data: v.Vector("stats", a.Stats), sequence: d.Heads * d.SeqQ, head: d.SeqQ, step: 1}
	if a.QKVFormat == attention.THD {
		s.sequence, s.head, s.step = 0, 1, d.Heads
	}
	return s
}

// log returns the statistic of a query of a head.
func (c *common) log(sequence, head, query int) *float32 {
	return &c.stats.data[sequence*c.stats.sequence+head*c.stats.head+query*c.stats.step]
}

// steps returns the vectors of d elements of one head as the rows of a matrix.
func steps(h host.Heads, sequence, head, n, d int) panel.Operand {
	if n == 0 || d == 0 {
		return panel.Operand{Rows: n, Cols: d, RowStep: h.Step, ColStep: 1}
	}
	return panel.Operand{Data: h.Data[sequence*h.Sequence+head*h.Head:], Rows: n, Cols: d, RowStep: h.Step, ColStep: 1}
}

// scores stores scale · left · keys for the visible elements of the block. left has the rows of the
// block at a pitch; panels hold the keys of the whole head.
func (c *common) scores(s *scoreBlock, left []float32, leftPitch, d int, panels []float32, scale float32) {
	mr, nr := c.kernel.MR, c.kernel.NR
	panel := d * nr
	t := kernel.Tile{ARow: leftPitch, AStep: 1, BStep: nr, CRow: s.pitch, K: d, Alpha: scale}
	for r := 0; r < s.rows; r += mr {
		t.Rows = min(mr, s.rows-r)
		t.A = left[r*leftPitch:]
		first := c.from(s, r) / nr * nr
		c.row(&t, panels[(s.key+first)/nr*panel:], panel, s.data[r*s.pitch+first:], c.seen(s, r+t.Rows-1)-first)
	}
}

// timesKeys computes scale · block · right for the rows of dst, the first of which belongs to the
// block's first query. It stores the result, or adds it if this is not the first block of these
// queries. panels hold right, d columns, for all keys of the head; finite says that it has no NaN
// or infinity, of which a product with the 0 of a key that a row does not see would make a NaN.
func (c *common) timesKeys(s *scoreBlock, panels []float32, d int, dst panel.Operand, scale float32, finite bool) {
	if d == 0 {
		return
	}
	mr, nr := c.kernel.MR, c.kernel.NR
	t := kernel.Tile{ARow: s.pitch, AStep: 1, BStep: nr, CRow: dst.RowStep, Alpha: scale}
	if s.more {
		t.Beta = 1
	}
	for r := 0; r < s.rows; r += mr {
		t.Rows = min(mr, s.rows-r)
		first, end := c.from(s, r), c.seen(s, r+t.Rows-1)
		if !finite {
			first = c.from(s, r+t.Rows-1)
			end = max(c.seen(s, r), first)
		}
		if t.K = end - first; t.K > 0 || !s.more {
			t.A = s.data[r*s.pitch+first:]
			c.row(&t, panels[(s.key+first)*nr:], c.SeqKV*nr, dst.Data[r*dst.RowStep:], d)
		}
		for i := r; i < r+t.Rows && !finite; i++ {
			to, seen := dst.Data[i*dst.RowStep:][:d], c.seen(s, i)
			for j := c.from(s, i); j < seen; j++ {
				if j < first || j >= end {
					c.addStep(to, scale*s.data[i*s.pitch+j], panels[(s.key+j)*nr:], c.SeqKV*nr)
				}
			}
		}
	}
}

// addStep adds a multiple of a step of packed columns to a row.
func (c *common) addStep(to []float32, factor float32, panels []float32, panel int) {
	nr := c.kernel.NR
	for col := 0; col < len(to); col += nr {
		some := to[col:min(col+nr, len(to))]
		vector.Axpy(factor, panels[col/nr*panel:][:len(some)], some)
	}
}

// finite reports whether no element of x is NaN or infinite, or so large that the squares overflow.
func finite(x []float32) bool {
	return vector.Dot(x, x) <= math.MaxFloat32
}

// timesQueries adds scale · blockᵀ · right to the rows of dst that belong to the block's keys;
// panels hold right, d columns, for the queries of the block. With fresh, a tile of keys that no
// query before the block sees is stored as a whole instead. finite is that of timesKeys.
func (c *common) timesQueries(s *scoreBlock, panels []float32, d int, dst panel.Operand, scale float32, fresh, finite bool) {
	if d == 0 {
		return
	}
	mr, nr := c.kernel.MR, c.kernel.NR
	t := kernel.Tile{ARow: 1, AStep: s.pitch, BStep: nr, CRow: dst.RowStep, Alpha: scale}
	limit := min(bwdKeys, c.visible(c.SeqQ-1)-s.key)
	for j := 0; j < s.keys; j += mr {
		t.Rows = min(mr, limit-j)
		first, end := c.sees(s, j, t.Rows)
		if first == s.rows {
			return
		}
		if end <= first {
			continue
		}
		t.Beta = 1
		if fresh && c.firstQuery(s.key+j) >= s.query {
			t.Beta = 0
		}
		if !finite {
			_, end = c.sees(s, j, 1)
			first, _ = c.sees(s, j+t.Rows-1, 1)
			end = max(end, first)
		}
		if t.K = end - first; t.K > 0 || t.Beta == 0 {
			t.A = s.data[first*s.pitch+j:]
			c.row(&t, panels[first*nr:], s.rows*nr, dst.Data[(s.key+j)*dst.RowStep:], d)
		}
		for i := j; i < j+t.Rows && !finite; i++ {
			to := dst.Data[(s.key+i)*dst.RowStep:][:d]
			row, last := c.sees(s, i, 1)
			for ; row < last; row++ {
				if row < first || row >= end {
					c.addStep(to, scale*s.data[row*s.pitch+i], panels[row*nr:], s.rows*nr)
				}
			}
		}
	}
}

// row runs a tile for each panel of a row of tiles of width columns.
func (c *common) row(t *kernel.Tile, panels []float32, panel int, dst []float32, width int) {
	nr := c.kernel.NR
	for col := 0; col < width; col += nr {
		t.Cols = min(nr, width-col)
		t.B = panels[col/nr*panel:]
		t.C = dst[col:]
		c.kernel.Run(t)
	}
}

// prefetch brings up to some rows of x from r0 on into the cache.
func prefetch(x panel.Operand, r0, some int) {
	if rows := min(some, x.Rows-r0); rows > 0 && x.Cols > 0 {
		kernel.Prefetch(x.Data[r0*x.RowStep:], x.RowStep, rows, x.Cols)
	}
}

// copyRows copies rows of x from r0 on at a pitch; missing rows of the last tile become zero.
func (c *common) copyRows(dst []float32, pitch int, x panel.Operand, r0, rows int) {
	x.PackRows(dst, pitch, r0, rows, 0, x.Cols, c.kernel.MR)
}
