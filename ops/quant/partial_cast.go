package quant

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// A shard is a run of consecutive elements of a matrix [h, w] in row-major order, the part that one
// rank of a distributed optimiser holds: element i of the shard is element start_offset + i of the
// matrix, at row ⌊(start_offset+i)/w⌋.

// PartialAmaxArgs are the arguments of FP8BlockScalingComputePartialAmax and
// NVFP42DComputePartialAmax.
type PartialAmaxArgs struct {
	Tensor      *tensor.Tensor `op:"0 tensor read compute"` // the shard [n]
	Amax        *tensor.Tensor `op:"1 amax write f32"`      // [⌈h/block_len⌉, ⌈w/block_len⌉]
	H           int            `op:"2 h"`
	W           int            `op:"3 w"` // h and w are the axes of the matrix
	StartOffset int            `op:"4 start_offset"`
	BlockLen    int            `op:"5 block_len >=1"`
}

// FP8BlockScalingComputePartialAmax computes the largest magnitude in each square tile of a
// matrix, over the elements that a shard holds.
var FP8BlockScalingComputePartialAmax = opregistry.NewOp("fp8_block_scaling_compute_partial_amax", opregistry.Schema[PartialAmaxArgs]{
	Doc: "amax of square tiles from a shard of a matrix",
	Formula: `
		fp8_block_scaling_compute_partial_amax computes the largest magnitude in each square tile of
		a matrix, over the elements that a shard holds:

		  amax[i,j] = max |x| over the elements of the shard with ⌊row/b⌋ = i, ⌊col/b⌋ = j

		It is 0 for tiles without elements. NaNs are ignored. The tiles of block scaling have a
		block_len of 128. Source: TransformerEngine 2.14.

		Arguments:

		  tensor  the shard [n]
		  amax    [⌈h/block_len⌉, ⌈w/block_len⌉]
		  w       h and w are the axes of the matrix
		  start_offset  the index of the shard's first element in the matrix, row by row

		Example:

		  tensor=[1 -3 2] h=2 w=2 start_offset=1 block_len=1 → amax=[[0 1] [3 2]]
	`,
	Check:     partialAmax,
	Tolerance: opregistry.Exact("some of the elements"),
})

// NVFP42DComputePartialAmax is FP8BlockScalingComputePartialAmax for the tiles of nvfp4, which
// have a block_len of 16.
var NVFP42DComputePartialAmax = opregistry.NewOp("nvfp4_2d_compute_partial_amax", opregistry.Schema[PartialAmaxArgs]{
	Doc: "amax of square nvfp4 tiles from a shard of a matrix",
	Formula: `
		nvfp4_2d_compute_partial_amax is fp8_block_scaling_compute_partial_amax for the tiles of
		nvfp4, which have a block_len of 16.

		Arguments:

		  tensor  the shard [n]
		  amax    [⌈h/block_len⌉, ⌈w/block_len⌉]
		  w       h and w are the axes of the matrix

		Example:

		  tensor=[1 -3 2] h=2 w=2 start_offset=1 block_len=16 → amax=[[3]]
	`,
	Check:     partialAmax,
	Tolerance: opregistry.Exact("some of the elements"),
})

func partialAmax(c *opregistry.Check, a *PartialAmaxArgs) {
	if shardOf(c, "tensor", a.Tensor, "h", a.H, "w", a.W, a.StartOffset) && blockLen(c, a.BlockLen) {
		c.Shape("amax", a.Amax, check.CeilDiv(a.H, a.BlockLen), check.CeilDiv(a.W, a.BlockLen))
	}
}

// PartialCastArgs are the arguments of FP8BlockScalingPartialCast.
type PartialCastArgs struct {
	Inp         *tensor.Tensor `op:"0 inp read compute [n]"`
	Out         *tensor.Tensor `op:"1 out write fp8 [n]"`
	Scale       *tensor.Tensor `op:"2 scale read f32"`
	H           int            `op:"3 h"`
	W           int            `op:"4 w"`
	StartOffset int            `op:"5 start_offset"`
	BlockLen    int            `op:"6 block_len >=1"`
}

// FP8BlockScalingPartialCast rounds a shard of a matrix to fp8; each element has the scale of its
// square tile.
var FP8BlockScalingPartialCast = opregistry.NewOp("fp8_block_scaling_partial_cast", opregistry.Schema[PartialCastArgs]{
	Doc: "fp8 copy of a shard of a matrix with scales of square tiles",
	Formula: `
		fp8_block_scaling_partial_cast rounds a shard of a matrix to fp8; each element has the scale
		of its square tile:

		  out[i] = fp8(x[i] · scale[⌊row/b⌋, ⌊col/b⌋])

		Rounding is that of quantize. Only the elements of the shard are written. Source:
		TransformerEngine 2.14, which also writes to the rest of the tile.

		Arguments:

		  inp    the shard
		  scale  [⌈h/block_len⌉, ⌈w/block_len⌉]
		  w      h and w are the axes of the matrix

		Example:

		  inp=[1 -3 2] scale=[[1 2] [1 4]] h=2 w=2 start_offset=1 block_len=1 → out=f8e4m3[2 -3 8]
	`,
	Check: func(c *opregistry.Check, a *PartialCastArgs) {
		if shardOf(c, "inp", a.Inp, "h", a.H, "w", a.W, a.StartOffset) {
			c.Shape("scale", a.Scale, check.CeilDiv(a.H, a.BlockLen), check.CeilDiv(a.W, a.BlockLen))
		}
	},
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "as quantize"},
})

// MXFP8PartialAmaxArgs are the arguments of MXFP8ScalingComputePartialAmax.
type MXFP8PartialAmaxArgs struct {
	Input       *tensor.Tensor `op:"0 input read compute [n]"`
	AmaxRowwise *tensor.Tensor `op:"1 amax_rowwise write =input"`
	AmaxColwise *tensor.Tensor `op:"2 amax_colwise write =input"`
	Rows        int            `op:"3 rows"`
	Cols        int            `op:"4 cols"`
	StartOffset int            `op:"5 start_offset"`
}

// MXFP8ScalingComputePartialAmax computes the largest magnitude in each block of a matrix, over
// the elements that a shard holds, for the blocks of 1×32 along rows and those of 32×1 along
// columns.
var MXFP8ScalingComputePartialAmax = opregistry.NewOp("mxfp8_scaling_compute_partial_amax", opregistry.Schema[MXFP8PartialAmaxArgs]{
	Doc: "amax of mxfp8 blocks from a shard of a matrix",
	Formula: `
		mxfp8_scaling_compute_partial_amax computes the largest magnitude in each block of a matrix,
		over the elements that a shard holds, for the blocks of 1×32 along rows and those of 32×1
		along columns:

		  amax_rowwise[row, ⌊col/32⌋] and amax_colwise[⌊row/32⌋, col] = max |x|

		Both are 0 for blocks without elements. NaNs are ignored. Source: TransformerEngine 2.14.

		Arguments:

		  input         the shard
		  amax_rowwise  [rows, ⌈cols/32⌉]
		  amax_colwise  [⌈rows/32⌉, cols]
		  cols          rows and cols are the axes of the matrix

		Example:

		  input=[1 -3 2] rows=2 cols=2 start_offset=1 → amax_rowwise=[[1] [3]] amax_colwise=[[3 2]]
	`,
	Check: func(c *opregistry.Check, a *MXFP8PartialAmaxArgs) {
		if shardOf(c, "input", a.Input, "rows", a.Rows, "cols", a.Cols, a.StartOffset) {
			c.Shape("amax_rowwise", a.AmaxRowwise, a.Rows, check.CeilDiv(a.Cols, 32))
			c.Shape("amax_colwise", a.AmaxColwise, check.CeilDiv(a.Rows, 32), a.Cols)
		}
	},
	Tolerance: opregistry.Exact("some of the elements"),
})

// MXFP8PartialCastArgs are the arguments of MXFP8ScalingPartialCast.
type MXFP8PartialCastArgs struct {
	Input           *tensor.Tensor `op:"0 input read compute [n]"`
	OutputRowwise   *tensor.Tensor `op:"1 output_rowwise write f8e4m3 [n]"`
	OutputColwise   *tensor.Tensor `op:"2 output_colwise write f8e4m3 [n]"`
	ScaleInvRowwise *tensor.Tensor `op:"3 scale_inv_rowwise read u8"`
	ScaleInvColwise *tensor.Tensor `op:"4 scale_inv_colwise read u8"`
	Rows            int            `op:"5 rows"`
	Cols            int            `op:"6 cols"`
	StartOffset     int            `op:"7 start_offset"`
}

// MXFP8ScalingPartialCast rounds a shard of a matrix to E4M3 twice, with the scales of the blocks
// along rows and with those along columns.
var MXFP8ScalingPartialCast = opregistry.NewOp("mxfp8_scaling_partial_cast", opregistry.Schema[MXFP8PartialCastArgs]{
	Doc: "mxfp8 copies of a shard of a matrix",
	Formula: `
		mxfp8_scaling_partial_cast rounds a shard of a matrix to E4M3 twice, with the scales of the
		blocks along rows and with those along columns:

		  output_rowwise[i] = E4M3(x[i] / scale_inv_rowwise[row, ⌊col/32⌋])
		  output_colwise[i] = E4M3(x[i] / scale_inv_colwise[⌊row/32⌋, col])

		Rounding is that of quantize. Source: TransformerEngine 2.14.

		Arguments:

		  input              the shard
		  scale_inv_rowwise  E8M0 [rows, ⌈cols/32⌉]
		  scale_inv_colwise  E8M0 [⌈rows/32⌉, cols]
		  cols               rows and cols are the axes of the matrix

		Example:

		  input=[1 -3 2] scale_inv_rowwise=u8[[126] [127]] scale_inv_colwise=u8[[127 128]] rows=2
		    cols=2 start_offset=1 → output_rowwise=f8e4m3[2 -3 2] output_colwise=f8e4m3[0.5 -3 1]
	`,
	Check: func(c *opregistry.Check, a *MXFP8PartialCastArgs) {
		if shardOf(c, "input", a.Input, "rows", a.Rows, "cols", a.Cols, a.StartOffset) {
			c.Shape("scale_inv_rowwise", a.ScaleInvRowwise, a.Rows, check.CeilDiv(a.Cols, 32))
			c.Shape("scale_inv_colwise", a.ScaleInvColwise, check.CeilDiv(a.Rows, 32), a.Cols)
		}
	},
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "as quantize"},
})

// shardOf reports whether a tensor is a vector that is a shard of a matrix.
func shardOf(c *opregistry.Check, name string, x *tensor.Tensor, hName string, h int, wName string, w, start int) bool {
	if !c.Rank(name, x, 1) {
		return false
	}
	if wrong, want, got := shardFault(x.NumElements(), hName, h, wName, w, start); wrong != "" {
		c.Fail(wrong, want, "%s", got)
	}
	return c.OK()
}

// shardFault returns which number is wrong with a shard of n elements, "" when none is.
func shardFault(n int, hName string, h int, wName string, w, start int) (wrong, want, got string) {
	switch {
	case h < 0:
		return hName, "a length >= 0", check.Itoa(h)
	case w < 0:
		return wName, "a length >= 0", check.Itoa(w)
	case h > 0 && w > math.MaxInt/h:
		return wName, "a matrix whose elements can be counted", check.Itoa(h) + "×" + check.Itoa(w)
	case start < 0 || start > h*w-n:
		return "start_offset", "an offset >= 0 with which " + check.Itoa(n) + " elements lie in a matrix of " + check.Itoa(h) + "×" + check.Itoa(w), check.Itoa(start)
	}
	return "", "", ""
}

// blockLen requires a length of blocks in one of many calls, which tags do not bound.
func blockLen(c *opregistry.Check, n int) bool {
	if n < 1 {
		c.Fail("block_len", "a number >= 1", "%d", n)
	}
	return c.OK()
}
