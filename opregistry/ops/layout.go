package ops

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// FP8TransposeArgs are the arguments of FP8Transpose.
type FP8TransposeArgs struct {
	Input *tensor.Tensor // [.., cols], an fp8 dtype or u8
	Out   *tensor.Tensor // [cols, rows], dtype of input
}

// FP8Transpose transposes the matrix of a tensor of bytes:
//
//	out[j,r] = in[r,j]
//
// Bits are copied, NaN patterns included. Input is read, out is written; they are disjoint.
var FP8Transpose = opregistry.NewOp("fp8_transpose", opregistry.Schema[FP8TransposeArgs]{
	Doc: "transpose of an fp8 matrix",
	Validate: func(a FP8TransposeArgs) error {
		c := check{op: "fp8_transpose"}
		if c.kind("input", a.Input, byteSized) && c.minRank("input", a.Input, 1) && c.kind("out", a.Out, byteSized) {
			c.sameDType("out", a.Out, "input", a.Input)
			c.matrix("out", "", a.Out, byteSized, a.Input.Shape().Cols(), a.Input.Shape().Rows(), false)
			c.disjoint("out", a.Out, "input", a.Input)
		}
		return c.err
	},
	Operands: func(a FP8TransposeArgs) []opregistry.Operand {
		return operands{}.read("input", a.Input).write("out", a.Out)
	},
})

// SwapFirstDimsArgs are the arguments of SwapFirstDims.
type SwapFirstDimsArgs struct {
	Tensor *tensor.Tensor // [a, b, ..], any dtype
	Out    *tensor.Tensor // [b, a, ..], dtype of tensor
}

// SwapFirstDims exchanges the first two axes:
//
//	out[j,i,..] = in[i,j,..]
//
// Bits are copied. Tensor is read, out is written; they are disjoint.
var SwapFirstDims = opregistry.NewOp("swap_first_dims", opregistry.Schema[SwapFirstDimsArgs]{
	Doc: "copy of a tensor with the first two axes exchanged",
	Validate: func(a SwapFirstDimsArgs) error {
		c := check{op: "swap_first_dims"}
		if !c.given("tensor", a.Tensor) || !c.minRank("tensor", a.Tensor, 2) || !c.given("out", a.Out) {
			return c.err
		}
		c.sameDType("out", a.Out, "tensor", a.Tensor)
		in, out := a.Tensor.Shape(), a.Out.Shape()
		if c.err == nil && (len(out) != len(in) || out[0] != in[1] || out[1] != in[0] || !out[2:].Equal(in[2:])) {
			c.fail("out", "the shape of tensor, "+in.String()+", with the first two axes exchanged", "%v", a.Out)
		}
		c.disjoint("out", a.Out, "tensor", a.Tensor)
		return c.err
	},
	Operands: func(a SwapFirstDimsArgs) []opregistry.Operand {
		return operands{}.read("tensor", a.Tensor).write("out", a.Out)
	},
})

// NVFP4DataTransposeArgs are the arguments of NVFP4DataTranspose.
type NVFP4DataTransposeArgs struct {
	Input *tensor.Tensor // u8 [m, k/2]
	Out   *tensor.Tensor // u8 [k, m/2]
}

// NVFP4DataTranspose transposes a matrix of 4-bit elements, two per byte, the one of the even
// column in the lower half:
//
//	out[j,i] = in[i,j]      0 ≤ i < m, 0 ≤ j < k
//
// m is even. Input is read, out is written; they are disjoint.
var NVFP4DataTranspose = opregistry.NewOp("nvfp4_data_transpose", opregistry.Schema[NVFP4DataTransposeArgs]{
	Doc: "transpose of a matrix of packed 4-bit elements",
	Validate: func(a NVFP4DataTransposeArgs) error {
		c := check{op: "nvfp4_data_transpose"}
		c.packedTranspose("input", a.Input, "out", a.Out)
		c.disjoint("out", a.Out, "input", a.Input)
		return c.err
	},
	Operands: func(a NVFP4DataTransposeArgs) []opregistry.Operand {
		return operands{}.read("input", a.Input).write("out", a.Out)
	},
})

func (c *check) packedTranspose(inName string, in *tensor.Tensor, outName string, out *tensor.Tensor) {
	if !c.dtype(inName, in, tensor.U8) || !c.rank(inName, in, 2) || !c.dtype(outName, out, tensor.U8) || !c.rank(outName, out, 2) {
		return
	}
	m, k := in.Shape()[0], 2*in.Shape()[1]
	if m%2 != 0 {
		c.fail(inName, "an even number of rows", "%v", in)
	}
	c.matrix(outName, "", out, ofU8, k, m/2, false)
}

// NVFP42DMultiTensorTransposeArgs are the arguments of NVFP42DMultiTensorTranspose.
type NVFP42DMultiTensorTransposeArgs struct {
	RowwiseDataList        []*tensor.Tensor // u8 [m, k/2]
	ColumnwiseDataList     []*tensor.Tensor // u8 [k, m/2]
	RowwiseScaleInvList    []*tensor.Tensor // f8e4m3 [≥ m, ⌈k/16⌉]
	ColumnwiseScaleInvList []*tensor.Tensor // f8e4m3 [≥ k, ⌈m/16⌉]
}

// NVFP42DMultiTensorTranspose computes data by columns from data by rows for each index of the
// lists. Each scale belongs to a 16×16 tile and is repeated for every row of the tile:
//
//	data as NVFP4DataTranspose
//	columnwise_scale_inv[j, t] = rowwise_scale_inv[16·t, ⌊j/16⌋]      0 where ⌊j/16⌋ ≥ ⌈k/16⌉
//
// Rows of scales beyond m and k are padding. The rowwise lists are read, the columnwise ones are
// written; the written ones share memory with no other operand. Source: TransformerEngine 2.14.
var NVFP42DMultiTensorTranspose = opregistry.NewOp("nvfp4_2d_multi_tensor_transpose", opregistry.Schema[NVFP42DMultiTensorTransposeArgs]{
	Doc: "columnwise copies of nvfp4 tensors with 16×16 tiles",
	Validate: func(a NVFP42DMultiTensorTransposeArgs) error {
		c := check{op: "nvfp4_2d_multi_tensor_transpose"}
		n := len(a.RowwiseDataList)
		c.length("columnwise_data_list", len(a.ColumnwiseDataList), n, "rowwise_data_list")
		c.length("rowwise_scale_inv_list", len(a.RowwiseScaleInvList), n, "rowwise_data_list")
		c.length("columnwise_scale_inv_list", len(a.ColumnwiseScaleInvList), n, "rowwise_data_list")
		for i, data := range a.RowwiseDataList {
			if c.err != nil {
				return c.err
			}
			c.packedTranspose("rowwise_data_list", data, "columnwise_data_list", a.ColumnwiseDataList[i])
			if c.err == nil {
				m, k := data.Shape()[0], 2*data.Shape()[1]
				c.tileScales("rowwise_scale_inv_list", a.RowwiseScaleInvList[i], m, k)
				c.tileScales("columnwise_scale_inv_list", a.ColumnwiseScaleInvList[i], k, m)
			}
			c.locate("", i)
		}
		if c.err != nil {
			return c.err
		}
		list := func(i int) ([]*tensor.Tensor, string, bool) {
			switch i {
			case 0:
				return a.RowwiseDataList, "rowwise_data_list", false
			case 1:
				return a.RowwiseScaleInvList, "rowwise_scale_inv_list", false
			case 2:
				return a.ColumnwiseDataList, "columnwise_data_list", true
			default:
				return a.ColumnwiseScaleInvList, "columnwise_scale_inv_list", true
			}
		}
		c.allApart(4*n, func(i int) (*tensor.Tensor, bool) {
			l, _, written := list(i / n)
			return l[i%n], written
		}, func(i int) string {
			_, name, _ := list(i / n)
			return indexed(name, i%n)
		})
		return c.err
	},
	Operands: func(a NVFP42DMultiTensorTransposeArgs) []opregistry.Operand {
		var o operands
		for i := range a.RowwiseDataList {
			o = o.read(indexed("rowwise_data_list", i), a.RowwiseDataList[i]).
				read(indexed("rowwise_scale_inv_list", i), a.RowwiseScaleInvList[i]).
				write(indexed("columnwise_data_list", i), a.ColumnwiseDataList[i]).
				write(indexed("columnwise_scale_inv_list", i), a.ColumnwiseScaleInvList[i])
		}
		return o
	},
})

// tileScales checks scales of 16×16 tiles that are repeated for each row.
func (c *check) tileScales(name string, t *tensor.Tensor, rows, cols int) {
	if c.dtype(name, t, tensor.F8E4M3) && c.rank(name, t, 2) && (t.Shape()[0] < rows || t.Shape()[1] != ceilDiv(cols, 16)) {
		c.fail(name, "at least "+itoa(rows)+" rows of "+itoa(ceilDiv(cols, 16)), "%v", t)
	}
}

// SplitsToOffsetsArgs are the arguments of SplitsToOffsets.
type SplitsToOffsetsArgs struct {
	FirstDims      []int
	LogicalLastDim int
	Output         *tensor.Tensor // i64 [len(first_dims)+1]
}

// SplitsToOffsets computes the offset of each tensor of a group, in elements:
//
//	output[0] = 0      output[i+1] = output[i] + first_dims[i]·logical_last_dim
//
// Output is written. A product or sum beyond the range of i64 is an argument error.
var SplitsToOffsets = opregistry.NewOp("splits_to_offsets", opregistry.Schema[SplitsToOffsetsArgs]{
	Doc: "offsets of the tensors of a group in elements",
	Validate: func(a SplitsToOffsetsArgs) error {
		c := check{op: "splits_to_offsets"}
		if c.dtype("output", a.Output, tensor.I64) && c.rank("output", a.Output, 1) {
			c.elements("output", a.Output, len(a.FirstDims)+1, "one more than first_dims")
		}
		if c.err == nil && a.LogicalLastDim < 0 {
			c.fail("logical_last_dim", "a length >= 0", "%d", a.LogicalLastDim)
		}
		left := math.MaxInt
		for i, n := range a.FirstDims {
			if c.err != nil {
				break
			}
			if n < 0 || a.LogicalLastDim > 0 && n > left/a.LogicalLastDim {
				c.fail("first_dims", "a length >= 0 with which the offsets fit in i64", "%d", n)
				c.locate("", i)
				break
			}
			left -= n * a.LogicalLastDim
		}
		return c.err
	},
	Operands: func(a SplitsToOffsetsArgs) []opregistry.Operand {
		return operands{}.write("output", a.Output)
	},
})
