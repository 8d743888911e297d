package quant

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Scaling says how the values of a quantised tensor are scaled. Always
//
//	value = data · scale_inv
type Scaling int

// The scalings. A tensor [.., cols] is a matrix whose rows are the leading axes, flattened.
const (
	// NoScaling quantises nothing.
	NoScaling Scaling = iota

	// DelayedScaling has one f32 scale per tensor, which the caller chose earlier.
	DelayedScaling

	// CurrentScaling has one f32 scale per tensor, from the amax of the tensor itself.
	CurrentScaling

	// BlockScaling has one f32 scale for each 1×128 elements of a row, or for each
	// 128×128 with Block2D. Source: DeepSeek-AI 2024, arXiv:2412.19437.
	BlockScaling

	// MXFP8Scaling has one E8M0 scale for each 1×32 elements of a row. Source: OCP
	// Microscaling Formats 1.0.
	MXFP8Scaling

	// NVFP4Scaling has E2M1 data, two elements per byte, one E4M3 scale for each 1×16 elements of a
	// row, or for each 16×16 with Block2D, and one f32 amax per tensor.
	NVFP4Scaling
)

// String returns the name of the scaling.
func (s Scaling) String() string {
	names := [...]string{"none", "delayed", "current", "block", "mxfp8", "nvfp4"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("scaling(%d)", int(s))
	}
	return names[s]
}

// BlockLen returns the length of a block, 0 for a scaling without blocks.
func (s Scaling) BlockLen() int {
	switch s {
	case BlockScaling:
		return 128
	case MXFP8Scaling:
		return 32
	case NVFP4Scaling:
		return 16
	default:
		return 0
	}
}

// Quantizer says how to quantise a tensor.
type Quantizer struct {
	Scaling         Scaling `op:"0 scaling"`
	ForcePow2Scales bool    `op:"1 force_pow_2_scales was=force_pow2_scales"` // current, block: scales are powers of two
	AmaxEpsilon     float32 `op:"2 amax_epsilon >=0"`                         // current, block: lower bound of amax
	Block2D         bool    `op:"3 block_2d was=block2_d"`                    // block, nvfp4: square blocks

	// Stochastic rounds nvfp4 data at random, in proportion to the distances from the two
	// neighbours, with random numbers determined by Seed and Offset.
	Stochastic bool   `op:"4 stochastic"`
	Seed       uint64 `op:"5 seed"`
	Offset     uint64 `op:"6 offset"`
}

// Quantized is a quantised tensor: the data of a matrix by rows, by columns, or both, and scales.
// This table says which fields a scaling uses, and their dtypes and shapes for a matrix [rows,
// cols] with blocks of length b.
//
//	                    delayed, current  block                 mxfp8                nvfp4
//	Data                fp8 [rows, cols]  fp8 [rows, cols]      fp8 [rows, cols]     u8 [rows, cols/2]
//	ScaleInv            f32 [1]           f32 [rows, ⌈cols/b⌉]  u8 [rows, ⌈cols/b⌉]  f8e4m3 [rows, ⌈cols/b⌉]
//	ColumnwiseData      fp8 [cols, rows]  fp8 [cols, rows]      fp8 [rows, cols]     u8 [cols, rows/2]
//	ColumnwiseScaleInv  –                 f32 [cols, ⌈rows/b⌉]  u8 [⌈rows/b⌉, cols]  f8e4m3 [cols, ⌈rows/b⌉]
//	Scale               f32 [1]           –                     –                    –
//	Amax                f32 [1]           –                     –                    f32 [1]
//
// With Block2D, ScaleInv has ⌈rows/b⌉ rows and ColumnwiseScaleInv has ⌈cols/b⌉. fp8 is f8e4m3 or
// f8e5m2, the same for both kinds of data. In data by columns the blocks run down the columns; the
// data is that of the transposed matrix, except that mxfp8 keeps the order of the matrix itself. u8
// scales are tensor.Float8E8M0; u8 data holds tensor.Float4E2M1, with the element of the even
// column in the lower four bits. Any operand may be strided: scales that a library wants padded are
// views of the padded memory.
type Quantized struct {
	Data               *tensor.Tensor `op:"0 data fp8 u8 ?"`
	ScaleInv           *tensor.Tensor `op:"1 scale_inv f32 u8 f8e4m3 ?"`
	ColumnwiseData     *tensor.Tensor `op:"2 columnwise_data fp8 u8 ?"`
	ColumnwiseScaleInv *tensor.Tensor `op:"3 columnwise_scale_inv f32 u8 f8e4m3 ?"`
	Scale              *tensor.Tensor `op:"4 scale f32 (1) ?"`
	Amax               *tensor.Tensor `op:"5 amax f32 (1) ?"`
}

// QuantizeArgs are the arguments of Quantize.
type QuantizeArgs struct {
	Tensor    *tensor.Tensor `op:"0 tensor read compute [.. cols]"`
	Quantizer Quantizer      `op:"1 quantizer"`
	Output    Quantized      `op:"8 output depends"`
	Noop      *tensor.Tensor `op:"14 noop read f32 (1) ?"`
}

// Quantize rounds a tensor to a narrow format.
var Quantize = opregistry.NewOp("quantize", opregistry.Schema[QuantizeArgs]{
	Doc: "rounds a tensor to fp8 or fp4 with scales",
	Formula: `
		quantize rounds a tensor to a narrow format. In these formulas amax is the largest magnitude
		in the tensor or block, and max the largest value of the data's dtype:

		  delayed:  amax = max(amax, max|x|)
		  current:  amax = max|x|      scale = max/amax
		  block:    scale = max/amax of the block
		  mxfp8:    scale_inv = the least power of two ≥ (amax of the block)/max
		  nvfp4:    amax = max|x|      S = 2688/amax
		            scale_inv = E4M3((amax of the block)/6 · S)      scale = S/scale_inv
		  data = x·scale, rounded      scale_inv = 1/scale

		The scales of current and block scaling follow the rules of
		multi_tensor_compute_scale_and_scale_inv with quantizer.amax_epsilon as epsilon and
		quantizer.force_pow_2_scales. For nvfp4, S and scale are at most the largest f32, and 1 for an
		amax of 0 or infinity. NaNs are ignored in an amax.

		Data is rounded once to nearest, ties to even; values out of range become ±max; NaN stays
		NaN, except that in E2M1 it becomes 6. With quantizer.stochastic, element i of the matrix in
		the order of the data, i = row·(even cols) + col, uses word i mod 4 of the Philox4x32-10 block
		with key seed and counter {low half, high half of offset + ⌊i/4⌋, 0 by rows or 1 by columns,
		0}; |x·scale| between neighbours lo and hi becomes hi when word·2⁻³² < (|x·scale| − lo)/(hi −
		lo).

		A scaling uses these fields of output, for a matrix [rows, cols] with blocks of b elements:
		128 for block, 32 for mxfp8, 16 for nvfp4.

		                        delayed, current  block                 mxfp8                nvfp4
		  data                  fp8 [rows, cols]  fp8 [rows, cols]      fp8 [rows, cols]     u8 [rows, cols/2]
		  scale_inv             f32 [1]           f32 [rows, ⌈cols/b⌉]  u8 [rows, ⌈cols/b⌉]  f8e4m3 [rows, ⌈cols/b⌉]
		  columnwise_data       fp8 [cols, rows]  fp8 [cols, rows]      fp8 [rows, cols]     u8 [cols, rows/2]
		  columnwise_scale_inv  –                 f32 [cols, ⌈rows/b⌉]  u8 [⌈rows/b⌉, cols]  f8e4m3 [cols, ⌈rows/b⌉]
		  scale                 f32 [1]           –                     –                    –
		  amax                  f32 [1]           –                     –                    f32 [1]

		With quantizer.block_2d the blocks are squares: scale_inv has ⌈rows/b⌉ rows and
		columnwise_scale_inv ⌈cols/b⌉. fp8 is f8e4m3 or f8e5m2, one for both kinds of data. In data by
		columns the blocks run down the columns; the data is that of the transposed matrix, except that
		mxfp8 keeps the order of the matrix. u8 scales are E8M0; u8 data holds two E2M1 elements, that
		of the even column in the lower four bits.

		In delayed scaling output.scale is read and output.amax is updated; what else output has is
		written. An empty tensor has amax 0. nvfp4 requires an even number of columns, and of rows for
		data by columns. Source: TransformerEngine 2.14; Salmon et al. 2011 for Philox.

		Arguments:

		  noop  a call with a value of 1 does nothing

		Example:

		  tensor=[[1 -2] [0.3 3]] quantizer.scaling=current → output.data=f8e4m3[[144 -288] [44
		    448]] output.scale_inv=[0.006696] output.scale=[149.3] output.amax=[3]
		  tensor=[[1 -2] [0.3 3]] quantizer.scaling=delayed output.scale=[2] output.amax=[1] →
		    output.data=f8e4m3[[2 -4] [0.625 6]] output.scale_inv=[0.5] output.amax=[3]
		  tensor=[[1 -2] [0.3 3]] quantizer.scaling=mxfp8 → output.data=f8e4m3[[128 -256] [40 384]]
		    output.scale_inv=u8[[120] [120]]
	`,
	Check: func(c *opregistry.Check, a *QuantizeArgs) {
		quantizing(c, a.Quantizer)
		quantized(c, a.Tensor, a.Quantizer, a.Output)
	},
	Access: func(a *QuantizeArgs, operand string, _ int) opregistry.Access {
		access := outputAccess(a.Quantizer, operand)
		if a.Noop != nil && access == opregistry.AccessWrite {
			return opregistry.AccessUpdate
		}
		return access
	},
	Tolerance: quantizeTolerance,
})

var quantizeTolerance = opregistry.Tolerance{
	Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, // with subnormals
	Reason: "scales are quotients of f32; x·scale in f32 may round to a tie of the narrow format",
}

// DequantizeArgs are the arguments of Dequantize.
type DequantizeArgs struct {
	Input   Quantized      `op:"0 input read"`
	Scaling Scaling        `op:"6 scaling"`
	Block2D bool           `op:"7 block_2d was=block2_d"`
	Output  *tensor.Tensor `op:"8 output write compute [.. cols]"`
}

// Dequantize is the inverse of Quantize, except for rounding.
var Dequantize = opregistry.NewOp("dequantize", opregistry.Schema[DequantizeArgs]{
	Doc: "values of a tensor quantised to fp8 or fp4",
	Formula: `
		dequantize is the inverse of quantize, except for rounding:

		  out = data·scale_inv, for nvfp4 data·scale_inv·amax/2688

		It uses the data by rows if it is given, otherwise the data by columns. The product is
		formed in f32 or better and rounded once. Operands of input that are not used may be nil. A
		scale_inv of NaN makes its block NaN. Source: as for quantize.

		Example:

		  input.data=f8e4m3[[2 -4] [0.625 6]] input.scale_inv=[0.5] scaling=delayed → output=[[1 -2]
		    [0.3125 3]]
	`,
	Check: func(c *opregistry.Check, a *DequantizeArgs) {
		if a.Scaling == NoScaling {
			c.Fail("scaling", "delayed, current, block, mxfp8 or nvfp4", "%v", a.Scaling)
		}
		checkQuantized(c, "input", a.Input, Quantizer{Scaling: a.Scaling, Block2D: a.Block2D},
			a.Output.Shape().Rows(), a.Output.Shape().Cols(), false)
	},
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-21}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "up to three products"},
})

// BgradQuantizeArgs are the arguments of BgradQuantize.
type BgradQuantizeArgs struct {
	Input     *tensor.Tensor `op:"0 input read compute [.. cols]"`
	Quantizer Quantizer      `op:"1 quantizer"`
	Output    Quantized      `op:"8 output depends"`
	DBias     *tensor.Tensor `op:"14 dbias write =input (cols)"`
}

// BgradQuantize quantises the gradient of a linear layer's output and sums its rows to the
// gradient of the bias.
var BgradQuantize = opregistry.NewOp("bgrad_quantize", opregistry.Schema[BgradQuantizeArgs]{
	Doc: "sum over rows of a gradient, and the gradient quantised",
	Formula: `
		bgrad_quantize quantises the gradient of a linear layer's output and sums its rows to the
		gradient of the bias:

		  dbias[j] = Σ_r dy[r,j]      output = quantize(dy)

		The sum is that of the unquantised gradient, in f32 or better and in a fixed order. Without
		rows dbias is 0.

		Arguments:

		  input   dy
		  output  unused where quantizer.scaling is none

		Example:

		  input=[[1 -2] [0.3 3]] quantizer.scaling=mxfp8 → output.data=f8e4m3[[128 -256] [40 384]]
		    output.scale_inv=u8[[120] [120]] dbias=[1.3 1]
	`,
	Check: func(c *opregistry.Check, a *BgradQuantizeArgs) {
		quantizer(c, a.Quantizer)
		quantized(c, a.Input, a.Quantizer, a.Output)
	},
	Access: func(a *BgradQuantizeArgs, operand string, _ int) opregistry.Access {
		return outputAccess(a.Quantizer, operand)
	},
	Tolerance: opregistry.Arithmetic(0, 1e-5, "as quantize, and sums of up to 36 positive numbers"),
})
