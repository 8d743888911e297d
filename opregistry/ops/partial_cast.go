package ops

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// A shard is a run of consecutive elements of a matrix [h, w] in row-major order, the part that one
// rank of a distributed optimiser holds: element i of the shard is element start_offset + i of the
// matrix, at row ⌊(start_offset+i)/w⌋.

// PartialAmaxArgs are the arguments of FP8BlockScalingComputePartialAmax and
// NVFP42DComputePartialAmax.
type PartialAmaxArgs struct {
	Tensor      *tensor.Tensor // the shard [n], any compute dtype
	Amax        *tensor.Tensor // f32 [⌈h/block_len⌉, ⌈w/block_len⌉]
	H, W        int            // axes of the matrix
	StartOffset int
	BlockLen    int
}

// FP8BlockScalingComputePartialAmax computes the largest magnitude in each square tile of a matrix,
// over the elements that a shard holds:
//
//	amax[i,j] = max |x| over the elements of the shard with ⌊row/b⌋ = i, ⌊col/b⌋ = j
//
// It is 0 for tiles without elements. NaNs are ignored. The shard is read, amax is written; they
// are disjoint. The tiles of block scaling have a block_len of 128. Source: TransformerEngine 2.14.
var FP8BlockScalingComputePartialAmax = opregistry.NewOp("fp8_block_scaling_compute_partial_amax", opregistry.Schema[PartialAmaxArgs]{
	Doc:      "amax of square tiles from a shard of a matrix",
	Validate: func(a PartialAmaxArgs) error { return a.validate("fp8_block_scaling_compute_partial_amax") },
	Operands: PartialAmaxArgs.operands,
})

// NVFP42DComputePartialAmax is FP8BlockScalingComputePartialAmax for the tiles of
// nvfp4, which have a block_len of 16.
var NVFP42DComputePartialAmax = opregistry.NewOp("nvfp4_2d_compute_partial_amax", opregistry.Schema[PartialAmaxArgs]{
	Doc:      "amax of square nvfp4 tiles from a shard of a matrix",
	Validate: func(a PartialAmaxArgs) error { return a.validate("nvfp4_2d_compute_partial_amax") },
	Operands: PartialAmaxArgs.operands,
})

func (a PartialAmaxArgs) validate(op string) error {
	c := check{op: op}
	c.partialAmax(a)
	c.disjoint("amax", a.Amax, "tensor", a.Tensor)
	return c.err
}

func (a PartialAmaxArgs) operands() []opregistry.Operand {
	return operands{}.read("tensor", a.Tensor).write("amax", a.Amax)
}

func (c *check) partialAmax(a PartialAmaxArgs) {
	c.shard("tensor", a.Tensor, "h", a.H, "w", a.W, a.StartOffset)
	c.blockLen(a.BlockLen)
	c.tiles("amax", a.Amax, a.H, a.W, a.BlockLen)
}

// PartialCastArgs are the arguments of FP8BlockScalingPartialCast.
type PartialCastArgs struct {
	Inp         *tensor.Tensor // the shard [n], any compute dtype
	Out         *tensor.Tensor // fp8 [n]
	Scale       *tensor.Tensor // f32 [⌈h/block_len⌉, ⌈w/block_len⌉]
	H, W        int            // axes of the matrix
	StartOffset int
	BlockLen    int
}

// FP8BlockScalingPartialCast rounds a shard of a matrix to fp8; each element has the scale of its
// square tile:
//
//	out[i] = fp8(x[i] · scale[⌊row/b⌋, ⌊col/b⌋])
//
// Rounding is that of Quantize. Only the elements of the shard are written. inp and scale are read,
// out is written and disjoint from them. Source: TransformerEngine 2.14, which also writes to the
// rest of the tile.
var FP8BlockScalingPartialCast = opregistry.NewOp("fp8_block_scaling_partial_cast", opregistry.Schema[PartialCastArgs]{
	Doc: "fp8 copy of a shard of a matrix with scales of square tiles",
	Validate: func(a PartialCastArgs) error {
		c := check{op: "fp8_block_scaling_partial_cast"}
		c.shard("inp", a.Inp, "h", a.H, "w", a.W, a.StartOffset)
		c.blockLen(a.BlockLen)
		c.tiles("scale", a.Scale, a.H, a.W, a.BlockLen)
		c.castOf("out", a.Out, ofFP8, a.Inp)
		c.disjoint("out", a.Out, "inp", a.Inp)
		c.disjoint("out", a.Out, "scale", a.Scale)
		return c.err
	},
	Operands: func(a PartialCastArgs) []opregistry.Operand {
		return operands{}.read("inp", a.Inp).read("scale", a.Scale).write("out", a.Out)
	},
})

// MXFP8PartialAmaxArgs are the arguments of MXFP8ScalingComputePartialAmax.
type MXFP8PartialAmaxArgs struct {
	Input       *tensor.Tensor // the shard [n], any compute dtype
	AmaxRowwise *tensor.Tensor // [rows, ⌈cols/32⌉], dtype of input
	AmaxColwise *tensor.Tensor // [⌈rows/32⌉, cols], dtype of input
	Rows, Cols  int            // axes of the matrix
	StartOffset int
}

// MXFP8ScalingComputePartialAmax computes the largest magnitude in each block of a matrix, over the
// elements that a shard holds, for the blocks of 1×32 along rows and those of 32×1 along columns:
//
//	amax_rowwise[row, ⌊col/32⌋] and amax_colwise[⌊row/32⌋, col] = max |x|
//
// Both are 0 for blocks without elements. NaNs are ignored. The shard is read, the others are
// written; all are disjoint. Source: TransformerEngine 2.14.
var MXFP8ScalingComputePartialAmax = opregistry.NewOp("mxfp8_scaling_compute_partial_amax", opregistry.Schema[MXFP8PartialAmaxArgs]{
	Doc: "amax of mxfp8 blocks from a shard of a matrix",
	Validate: func(a MXFP8PartialAmaxArgs) error {
		c := check{op: "mxfp8_scaling_compute_partial_amax"}
		c.shard("input", a.Input, "rows", a.Rows, "cols", a.Cols, a.StartOffset)
		c.mxfp8Blocks("amax_rowwise", a.AmaxRowwise, "amax_colwise", a.AmaxColwise, computes, a.Rows, a.Cols)
		if c.err == nil {
			c.sameDType("amax_rowwise", a.AmaxRowwise, "input", a.Input)
			c.sameDType("amax_colwise", a.AmaxColwise, "input", a.Input)
		}
		c.disjoint("amax_rowwise", a.AmaxRowwise, "input", a.Input)
		c.disjoint("amax_colwise", a.AmaxColwise, "input", a.Input)
		c.disjoint("amax_colwise", a.AmaxColwise, "amax_rowwise", a.AmaxRowwise)
		return c.err
	},
	Operands: func(a MXFP8PartialAmaxArgs) []opregistry.Operand {
		return operands{}.read("input", a.Input).write("amax_rowwise", a.AmaxRowwise).write("amax_colwise", a.AmaxColwise)
	},
})

// MXFP8PartialCastArgs are the arguments of MXFP8ScalingPartialCast.
type MXFP8PartialCastArgs struct {
	Input           *tensor.Tensor // the shard [n], any compute dtype
	OutputRowwise   *tensor.Tensor // f8e4m3 [n]
	OutputColwise   *tensor.Tensor // f8e4m3 [n]
	ScaleInvRowwise *tensor.Tensor // u8 (E8M0) [rows, ⌈cols/32⌉]
	ScaleInvColwise *tensor.Tensor // u8 (E8M0) [⌈rows/32⌉, cols]
	Rows, Cols      int            // axes of the matrix
	StartOffset     int
}

// MXFP8ScalingPartialCast rounds a shard of a matrix to E4M3 twice, with the scales of the blocks
// along rows and with those along columns:
//
//	output_rowwise[i] = E4M3(x[i] / scale_inv_rowwise[row, ⌊col/32⌋])
//	output_colwise[i] = E4M3(x[i] / scale_inv_colwise[⌊row/32⌋, col])
//
// Rounding is that of Quantize. The input and the scales are read, the outputs are written; the
// outputs share memory with no other operand. Source: TransformerEngine 2.14.
var MXFP8ScalingPartialCast = opregistry.NewOp("mxfp8_scaling_partial_cast", opregistry.Schema[MXFP8PartialCastArgs]{
	Doc: "mxfp8 copies of a shard of a matrix",
	Validate: func(a MXFP8PartialCastArgs) error {
		c := check{op: "mxfp8_scaling_partial_cast"}
		c.shard("input", a.Input, "rows", a.Rows, "cols", a.Cols, a.StartOffset)
		c.mxfp8Blocks("scale_inv_rowwise", a.ScaleInvRowwise, "scale_inv_colwise", a.ScaleInvColwise, ofU8, a.Rows, a.Cols)
		c.castOf("output_rowwise", a.OutputRowwise, ofE4M3, a.Input)
		c.castOf("output_colwise", a.OutputColwise, ofE4M3, a.Input)
		c.disjoint("output_colwise", a.OutputColwise, "output_rowwise", a.OutputRowwise)
		c.disjoint("output_rowwise", a.OutputRowwise, "input", a.Input)
		c.disjoint("output_rowwise", a.OutputRowwise, "scale_inv_rowwise", a.ScaleInvRowwise)
		c.disjoint("output_rowwise", a.OutputRowwise, "scale_inv_colwise", a.ScaleInvColwise)
		c.disjoint("output_colwise", a.OutputColwise, "input", a.Input)
		c.disjoint("output_colwise", a.OutputColwise, "scale_inv_rowwise", a.ScaleInvRowwise)
		c.disjoint("output_colwise", a.OutputColwise, "scale_inv_colwise", a.ScaleInvColwise)
		return c.err
	},
	Operands: func(a MXFP8PartialCastArgs) []opregistry.Operand {
		return operands{}.read("input", a.Input).read("scale_inv_rowwise", a.ScaleInvRowwise).read("scale_inv_colwise", a.ScaleInvColwise).
			write("output_rowwise", a.OutputRowwise).write("output_colwise", a.OutputColwise)
	},
})

// shard checks a vector that is a shard of a matrix.
func (c *check) shard(name string, x *tensor.Tensor, hName string, h int, wName string, w, start int) {
	if !c.compute(name, x) || !c.rank(name, x, 1) {
		return
	}
	switch n := x.NumElements(); {
	case h < 0:
		c.fail(hName, "a length >= 0", "%d", h)
	case w < 0:
		c.fail(wName, "a length >= 0", "%d", w)
	case h > 0 && w > math.MaxInt/h:
		c.fail(wName, "a matrix whose elements can be counted", "%d×%d", h, w)
	case start < 0 || start > h*w-n:
		c.fail("start_offset", "an offset >= 0 with which "+itoa(n)+" elements lie in a matrix of "+itoa(h)+"×"+itoa(w), "%d", start)
	}
}

func (c *check) blockLen(n int) {
	if c.err == nil && n < 1 {
		c.fail("block_len", "a length >= 1", "%d", n)
	}
}

// tiles checks f32 numbers, one per tile of a matrix.
func (c *check) tiles(name string, t *tensor.Tensor, h, w, b int) {
	if c.dtype(name, t, tensor.F32) && c.rank(name, t, 2) {
		c.matrix(name, "", t, ofF32, ceilDiv(h, b), ceilDiv(w, b), false)
	}
}

func (c *check) mxfp8Blocks(rowName string, row *tensor.Tensor, colName string, col *tensor.Tensor, k listKind, rows, cols int) {
	c.matrix(rowName, "", row, k, rows, ceilDiv(cols, 32), false)
	c.matrix(colName, "", col, k, ceilDiv(rows, 32), cols, false)
}

// castOf checks the narrow copy of a shard.
func (c *check) castOf(name string, t *tensor.Tensor, k listKind, x *tensor.Tensor) {
	if c.kind(name, t, k) && c.rank(name, t, 1) {
		c.elements(name, t, x.NumElements(), "one an element of the shard")
	}
}
