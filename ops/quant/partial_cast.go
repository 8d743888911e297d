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
	c := check.Call{Op: op}
	partialAmax(&c, a)
	c.Disjoint("amax", a.Amax, "tensor", a.Tensor)
	return c.Err
}

func (a PartialAmaxArgs) operands() []opregistry.Operand {
	return check.Operands{}.Read("tensor", a.Tensor).Write("amax", a.Amax)
}

func partialAmax(c *check.Call, a PartialAmaxArgs) {
	shard(c, "tensor", a.Tensor, "h", a.H, "w", a.W, a.StartOffset)
	blockLen(c, a.BlockLen)
	tiles(c, "amax", a.Amax, a.H, a.W, a.BlockLen)
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
		c := check.Call{Op: "fp8_block_scaling_partial_cast"}
		shard(&c, "inp", a.Inp, "h", a.H, "w", a.W, a.StartOffset)
		blockLen(&c, a.BlockLen)
		tiles(&c, "scale", a.Scale, a.H, a.W, a.BlockLen)
		castOf(&c, "out", a.Out, check.OfFP8, a.Inp)
		c.Disjoint("out", a.Out, "inp", a.Inp)
		c.Disjoint("out", a.Out, "scale", a.Scale)
		return c.Err
	},
	Operands: func(a PartialCastArgs) []opregistry.Operand {
		return check.Operands{}.Read("inp", a.Inp).Read("scale", a.Scale).Write("out", a.Out)
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
		c := check.Call{Op: "mxfp8_scaling_compute_partial_amax"}
		shard(&c, "input", a.Input, "rows", a.Rows, "cols", a.Cols, a.StartOffset)
		mxfp8Blocks(&c, "amax_rowwise", a.AmaxRowwise, "amax_colwise", a.AmaxColwise, check.Computes, a.Rows, a.Cols)
		if c.Err == nil {
			c.SameDType("amax_rowwise", a.AmaxRowwise, "input", a.Input)
			c.SameDType("amax_colwise", a.AmaxColwise, "input", a.Input)
		}
		c.Disjoint("amax_rowwise", a.AmaxRowwise, "input", a.Input)
		c.Disjoint("amax_colwise", a.AmaxColwise, "input", a.Input)
		c.Disjoint("amax_colwise", a.AmaxColwise, "amax_rowwise", a.AmaxRowwise)
		return c.Err
	},
	Operands: func(a MXFP8PartialAmaxArgs) []opregistry.Operand {
		return check.Operands{}.Read("input", a.Input).Write("amax_rowwise", a.AmaxRowwise).Write("amax_colwise", a.AmaxColwise)
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
		c := check.Call{Op: "mxfp8_scaling_partial_cast"}
		shard(&c, "input", a.Input, "rows", a.Rows, "cols", a.Cols, a.StartOffset)
		mxfp8Blocks(&c, "scale_inv_rowwise", a.ScaleInvRowwise, "scale_inv_colwise", a.ScaleInvColwise, check.OfU8, a.Rows, a.Cols)
		castOf(&c, "output_rowwise", a.OutputRowwise, check.OfE4M3, a.Input)
		castOf(&c, "output_colwise", a.OutputColwise, check.OfE4M3, a.Input)
		c.Disjoint("output_colwise", a.OutputColwise, "output_rowwise", a.OutputRowwise)
		c.Disjoint("output_rowwise", a.OutputRowwise, "input", a.Input)
		c.Disjoint("output_rowwise", a.OutputRowwise, "scale_inv_rowwise", a.ScaleInvRowwise)
		c.Disjoint("output_rowwise", a.OutputRowwise, "scale_inv_colwise", a.ScaleInvColwise)
		c.Disjoint("output_colwise", a.OutputColwise, "input", a.Input)
		c.Disjoint("output_colwise", a.OutputColwise, "scale_inv_rowwise", a.ScaleInvRowwise)
		c.Disjoint("output_colwise", a.OutputColwise, "scale_inv_colwise", a.ScaleInvColwise)
		return c.Err
	},
	Operands: func(a MXFP8PartialCastArgs) []opregistry.Operand {
		return check.Operands{}.Read("input", a.Input).Read("scale_inv_rowwise", a.ScaleInvRowwise).Read("scale_inv_colwise", a.ScaleInvColwise).
			Write("output_rowwise", a.OutputRowwise).Write("output_colwise", a.OutputColwise)
	},
})

// shard checks a vector that is a shard of a matrix.
func shard(c *check.Call, name string, x *tensor.Tensor, hName string, h int, wName string, w, start int) {
	if !c.Compute(name, x) || !c.Rank(name, x, 1) {
		return
	}
	switch n := x.NumElements(); {
	case h < 0:
		c.Fail(hName, "a length >= 0", "%d", h)
	case w < 0:
		c.Fail(wName, "a length >= 0", "%d", w)
	case h > 0 && w > math.MaxInt/h:
		c.Fail(wName, "a matrix whose elements can be counted", "%d×%d", h, w)
	case start < 0 || start > h*w-n:
		c.Fail("start_offset", "an offset >= 0 with which "+check.Itoa(n)+" elements lie in a matrix of "+check.Itoa(h)+"×"+check.Itoa(w), "%d", start)
	}
}

func blockLen(c *check.Call, n int) {
	if c.Err == nil && n < 1 {
		c.Fail("block_len", "a length >= 1", "%d", n)
	}
}

// tiles checks f32 numbers, one per tile of a matrix.
func tiles(c *check.Call, name string, t *tensor.Tensor, h, w, b int) {
	if c.DType(name, t, tensor.F32) && c.Rank(name, t, 2) {
		matrix(c, name, "", t, check.OfF32, check.CeilDiv(h, b), check.CeilDiv(w, b), false)
	}
}

func mxfp8Blocks(c *check.Call, rowName string, row *tensor.Tensor, colName string, col *tensor.Tensor, k check.DTypes, rows, cols int) {
	matrix(c, rowName, "", row, k, rows, check.CeilDiv(cols, 32), false)
	matrix(c, colName, "", col, k, check.CeilDiv(rows, 32), cols, false)
}

// castOf checks the narrow copy of a shard.
func castOf(c *check.Call, name string, t *tensor.Tensor, k check.DTypes, x *tensor.Tensor) {
	if c.Kind(name, t, k) && c.Rank(name, t, 1) {
		c.Elements(name, t, x.NumElements(), "one an element of the shard")
	}
}
