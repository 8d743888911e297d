package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
)

// shard is a run of consecutive elements of a matrix.
type shard struct {
	x        host.Matrix // one row
	start, w int         // its first element, and the columns of the matrix
}

// segment returns the part of a row that the shard holds: n elements from index at on, which begin
// at a column.
func (s *shard) segment(row int) (at, col, n int) {
	lo, hi := max(row*s.w, s.start), min((row+1)*s.w, s.start+s.x.Cols)
	return lo - s.start, lo - row*s.w, max(hi-lo, 0)
}

// splitAtBlock calls f for the elements of a segment: for those of the block in which the segment
// begins unless it begins at the first column of the block, and for the rest. first is the block of
// the elements from index from to to.
func splitAtBlock(col, n, block int, f func(from, to, first int)) {
	head := 0
	if col%block != 0 && n > 0 {
		head = min(block-col%block, n)
		f(0, head, col/block)
	}
	if head < n {
		f(head, n, (col+head)/block)
	}
}

// raiseBlocks raises the largest magnitudes of the blocks of a row by those of a segment. tmp is
// scratch.
func raiseBlocks(amax, x []float32, col, block int, tmp []float32) {
	splitAtBlock(col, len(x), block, func(from, to, first int) {
		n := (to - from + block - 1) / block
		fp8.Amaxes(tmp[:n], x[from:to], block)
		fp8.Raise(amax[first:], tmp[:n])
	})
}

// shardAmax is a call of an op that finds the largest magnitudes of blocks in a shard. Its items
// are rows of blocks.
type shardAmax struct {
	host.Cut
	shard
	exec         *opregistry.Exec
	h, block     int
	tiles        host.Matrix // of square tiles
	rows, cols   host.Matrix // of blocks along rows and along columns
	squares      bool
	width, count int // of what a row of blocks has, and blocks in a row
}

var shardAmaxKernel = parallel.NewKernel((*shardAmax).part)

// partialAmax implements quant.FP8BlockScalingComputePartialAmax and
// quant.NVFP42DComputePartialAmax.
func partialAmax(e *opregistry.Exec, a quant.PartialAmaxArgs) error {
	var v host.Views
	c := partialAmaxOf(&v, e, a)
	if v.Err != nil {
		return v.Err
	}
	c.run()
	return nil
}

func partialAmaxOf(v *host.Views, e *opregistry.Exec, a quant.PartialAmaxArgs) shardAmax {
	c := shardAmax{shard: shard{v.Matrix("tensor", a.Tensor), a.StartOffset, a.W}, exec: e, h: a.H, block: a.BlockLen, squares: true}
	c.tiles = v.Matrix("amax", a.Amax)
	c.width = c.tiles.Cols
	return c
}

// mxfp8PartialAmax implements quant.MXFP8ScalingComputePartialAmax.
func mxfp8PartialAmax(e *opregistry.Exec, a quant.MXFP8PartialAmaxArgs) error {
	var v host.Views
	c := shardAmax{
		shard: shard{v.Matrix("input", a.Input), a.StartOffset, a.Cols}, exec: e, h: a.Rows, block: quant.MXFP8Scaling.BlockLen(),
		rows: v.Matrix("amax_rowwise", a.AmaxRowwise), cols: v.Matrix("amax_colwise", a.AmaxColwise),
	}
	if v.Err != nil {
		return v.Err
	}
	c.width = c.cols.Cols
	c.run()
	return nil
}

func (c shardAmax) run() {
	c.count = (c.w + c.block - 1) / c.block
	c.Cut = host.CutItems((c.h+c.block-1)/c.block, c.block*c.w)
	shardAmaxKernel.Run(c.exec.Pool(), c.Parts, c)
}

func (c *shardAmax) part(part int) {
	lo, hi := c.Bounds(part)
	buf := c.exec.Scratch(c.width + 2*c.count + c.w)
	amax, line, tmp, wide := buf[:c.width], buf[c.width:][:c.count], buf[c.width+c.count:][:c.count], buf[c.width+2*c.count:]
	for i := lo; i < hi; i++ {
		clear(amax)
		for r := i * c.block; r < min((i+1)*c.block, c.h); r++ {
			at, col, n := c.segment(r)
			var x []float32
			if n > 0 {
				x = c.x.Piece(0, at, n, wide)
			}
			if c.squares {
				raiseBlocks(amax, x, col, c.block, tmp)
				continue
			}
			clear(line)
			raiseBlocks(line, x, col, c.block, tmp)
			c.rows.Put(r, 0, line)
			fp8.Raise(amax[min(col, c.width):], x)
		}
		if c.squares {
			c.tiles.Put(i, 0, amax)
		} else {
			c.cols.Put(i, 0, amax)
		}
	}
	c.exec.Release(buf)
}

// shardCast is a call of an op that rounds a shard to fp8. Its items are rows of blocks.
type shardCast struct {
	host.Cut
	shard
	exec       *opregistry.Exec
	f          *fp8.Format
	h, block   int
	out        []byte // with the scales of square tiles or of blocks along rows
	colwise    []byte // with those of blocks along columns, if there are any
	scales     host.Matrix
	rows, cols host.Bytes // E8M0
}

var shardCastKernel = parallel.NewKernel((*shardCast).part)

// partialCast implements quant.FP8BlockScalingPartialCast.
func partialCast(e *opregistry.Exec, a quant.PartialCastArgs) error {
	var v host.Views
	c := shardCast{
		shard: shard{v.Matrix("inp", a.Inp), a.StartOffset, a.W}, exec: e, f: host.FP8Format(a.Out.DType()), h: a.H, block: a.BlockLen,
		out: v.Bytes("out", a.Out).Data, scales: v.Matrix("scale", a.Scale),
	}
	if v.Err != nil {
		return v.Err
	}
	c.run()
	return nil
}

// mxfp8PartialCast implements quant.MXFP8ScalingPartialCast.
func mxfp8PartialCast(e *opregistry.Exec, a quant.MXFP8PartialCastArgs) error {
	var v host.Views
	c := shardCast{
		shard: shard{v.Matrix("input", a.Input), a.StartOffset, a.Cols}, exec: e, f: &fp8.E4M3, h: a.Rows, block: quant.MXFP8Scaling.BlockLen(),
		out: v.Bytes("output_rowwise", a.OutputRowwise).Data, colwise: v.Bytes("output_colwise", a.OutputColwise).Data,
		rows: v.Bytes("scale_inv_rowwise", a.ScaleInvRowwise), cols: v.Bytes("scale_inv_colwise", a.ScaleInvColwise),
	}
	if v.Err != nil {
		return v.Err
	}
	c.run()
	return nil
}

func (c shardCast) run() {
	c.Cut = host.CutItems((c.h+c.block-1)/c.block, c.block*c.w)
	shardCastKernel.Run(c.exec.Pool(), c.Parts, c)
}

func (c *shardCast) part(part int) {
	lo, hi := c.Bounds(part)
	buf := c.exec.Scratch(3 * c.w)
	wide, line, column := buf[:c.w], buf[c.w:][:c.w], buf[2*c.w:]
	for i := lo; i < hi; i++ {
		if c.colwise != nil {
			fp8.ReciprocalsE8M0(column, c.cols.Piece(i, 0, c.w))
		}
		for r := i * c.block; r < min((i+1)*c.block, c.h); r++ {
			at, col, n := c.segment(r)
			if n == 0 {
				continue
			}
			x := c.x.Piece(0, at, n, wide)
			if c.colwise != nil {
				c.f.EncodeEach(c.colwise[at:], x, column[col:])
			}
			scales := c.scalesOf(r, line)
			splitAtBlock(col, n, c.block, func(from, to, first int) {
				c.f.Encode(c.out[at+from:], x[from:to], scales[first:], c.block)
			})
		}
	}
	c.exec.Release(buf)
}

// scalesOf returns the scales of the blocks of a row.
func (c *shardCast) scalesOf(r int, buf []float32) []float32 {
	if c.colwise == nil {
		return c.scales.Piece(r/c.block, 0, c.scales.Cols, nil)
	}
	scales := buf[:c.rows.Cols]
	fp8.ReciprocalsE8M0(scales, c.rows.Piece(r, 0, c.rows.Cols))
	return scales
}
