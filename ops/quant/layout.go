package quant

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// FP8TransposeArgs are the arguments of FP8Transpose.
type FP8TransposeArgs struct {
	Input *tensor.Tensor `op:"0 input read fp8 u8 [.. cols]"`
	Out   *tensor.Tensor `op:"1 out write =input [cols rows]"`
}

// FP8Transpose transposes the matrix of a tensor of bytes.
var FP8Transpose = opregistry.NewOp("fp8_transpose", opregistry.Schema[FP8TransposeArgs]{
	Doc: "transpose of an fp8 matrix",
	Formula: `
		fp8_transpose transposes the matrix of a tensor of bytes:

		  out[j,r] = in[r,j]

		Bits are copied, NaN patterns included.

		Example:

		  input=f8e4m3[[1 2 3] [4 5 6]] → out=f8e4m3[[1 4] [2 5] [3 6]]
	`,
	Tolerance: opregistry.Exact("a copy"),
})

// SwapFirstDimsArgs are the arguments of SwapFirstDims.
type SwapFirstDimsArgs struct {
	Tensor *tensor.Tensor `op:"0 tensor read any [* _ _]"`
	Out    *tensor.Tensor `op:"1 out write =tensor"`
}

// SwapFirstDims exchanges the first two axes.
var SwapFirstDims = opregistry.NewOp("swap_first_dims", opregistry.Schema[SwapFirstDimsArgs]{
	Doc: "copy of a tensor with the first two axes exchanged",
	Formula: `
		swap_first_dims exchanges the first two axes:

		  out[j,i,..] = in[i,j,..]

		Bits are copied.

		Arguments:

		  tensor  [a, b, ..]
		  out     [b, a, ..]

		Example:

		  tensor=[[[1] [2]] [[3] [4]] [[5] [6]]] → out=[[[1] [3] [5]] [[2] [4] [6]]]
	`,
	Check: func(c *opregistry.Check, a *SwapFirstDimsArgs) {
		in, out := a.Tensor.Shape(), a.Out.Shape()
		if len(out) != len(in) || out[0] != in[1] || out[1] != in[0] || !out[2:].Equal(in[2:]) {
			c.Fail("out", "the shape of tensor, "+in.String()+", with the first two axes exchanged", "%v", a.Out)
		}
	},
	Tolerance: opregistry.Exact("a copy"),
})

// NVFP4DataTransposeArgs are the arguments of NVFP4DataTranspose.
type NVFP4DataTransposeArgs struct {
	Input *tensor.Tensor `op:"0 input read u8 [2*h w]"`
	Out   *tensor.Tensor `op:"1 out write u8 [2*w h]"`
}

// NVFP4DataTranspose transposes a matrix of 4-bit elements, two per byte, the one of the even
// column in the lower half.
var NVFP4DataTranspose = opregistry.NewOp("nvfp4_data_transpose", opregistry.Schema[NVFP4DataTransposeArgs]{
	Doc: "transpose of a matrix of packed 4-bit elements",
	Formula: `
		nvfp4_data_transpose transposes a matrix of 4-bit elements, two per byte, the one of the
		even column in the lower half:

		  out[j,i] = in[i,j]      0 ≤ i < m, 0 ≤ j < k

		m is even.

		Arguments:

		  input  m = 2·h, k = 2·w

		Example:

		  input=u8[[33] [67]] → out=u8[[49] [66]]
	`,
	Tolerance: opregistry.Exact("a copy"),
})

// NVFP42DMultiTensorTransposeArgs are the arguments of NVFP42DMultiTensorTranspose.
type NVFP42DMultiTensorTransposeArgs struct {
	RowwiseDataList        []*tensor.Tensor `op:"0 rowwise_data_list read u8 len=n"`
	ColumnwiseDataList     []*tensor.Tensor `op:"1 columnwise_data_list write u8 len=n"`
	RowwiseScaleInvList    []*tensor.Tensor `op:"2 rowwise_scale_inv_list read f8e4m3 len=n"`
	ColumnwiseScaleInvList []*tensor.Tensor `op:"3 columnwise_scale_inv_list write f8e4m3 len=n"`
}

// NVFP42DMultiTensorTranspose computes data by columns from data by rows for each index of the
// lists.
var NVFP42DMultiTensorTranspose = opregistry.NewOp("nvfp4_2d_multi_tensor_transpose", opregistry.Schema[NVFP42DMultiTensorTransposeArgs]{
	Doc: "columnwise copies of nvfp4 tensors with 16×16 tiles",
	Formula: `
		nvfp4_2d_multi_tensor_transpose computes data by columns from data by rows for each index of
		the lists. Each scale belongs to a 16×16 tile and is repeated for every row of the tile:

		  data as nvfp4_data_transpose
		  columnwise_scale_inv[j, t] = rowwise_scale_inv[16·t, ⌊j/16⌋]      0 where ⌊j/16⌋ ≥ ⌈k/16⌉

		Rows of scales beyond m and k are padding. Source: TransformerEngine 2.14.

		Arguments:

		  rowwise_data_list          [m, k/2]
		  columnwise_data_list       [k, m/2]
		  rowwise_scale_inv_list     [≥ m, ⌈k/16⌉]
		  columnwise_scale_inv_list  [≥ k, ⌈m/16⌉]

		Example:

		  rowwise_data_list[0]=u8[[33] [67]] rowwise_scale_inv_list[0]=f8e4m3[[2] [2]] →
		    columnwise_data_list[0]=u8[[49] [66]] columnwise_scale_inv_list[0]=f8e4m3[[2] [2]]
	`,
	Check: func(c *opregistry.Check, a *NVFP42DMultiTensorTransposeArgs) {
		for i, data := range a.RowwiseDataList {
			tilesTranspose(c, data, a.ColumnwiseDataList[i], a.RowwiseScaleInvList[i], a.ColumnwiseScaleInvList[i])
			if !c.OK() {
				c.Rename(func(name string) string { return check.Indexed(name, i) })
				return
			}
		}
	},
	Tolerance: opregistry.Exact("a copy"),
})

func tilesTranspose(c *opregistry.Check, rowwise, columnwise, scales, columnwiseScales *tensor.Tensor) {
	if !c.Rank("rowwise_data_list", rowwise, 2) {
		return
	}
	m, k := rowwise.Shape()[0], 2*rowwise.Shape()[1]
	if m%2 != 0 {
		c.Fail("rowwise_data_list", "an even number of rows", "%v", rowwise)
	}
	c.Shape("columnwise_data_list", columnwise, k, m/2)
	tileScales(c, "rowwise_scale_inv_list", scales, m, k)
	tileScales(c, "columnwise_scale_inv_list", columnwiseScales, k, m)
}

// tileScales checks scales of 16×16 tiles that are repeated for each row.
func tileScales(c *opregistry.Check, name string, t *tensor.Tensor, rows, cols int) {
	if c.Rank(name, t, 2) && (t.Shape()[0] < rows || t.Shape()[1] != check.CeilDiv(cols, 16)) {
		c.Fail(name, "at least "+check.Itoa(rows)+" rows of "+check.Itoa(check.CeilDiv(cols, 16)), "%v", t)
	}
}

// SplitsToOffsetsArgs are the arguments of SplitsToOffsets.
type SplitsToOffsetsArgs struct {
	FirstDims      []int          `op:"0 first_dims"`
	LogicalLastDim int            `op:"1 logical_last_dim >=0"`
	Output         *tensor.Tensor `op:"2 output write i64 [n]"`
}

// SplitsToOffsets computes the offset of each tensor of a group, in elements.
var SplitsToOffsets = opregistry.NewOp("splits_to_offsets", opregistry.Schema[SplitsToOffsetsArgs]{
	Doc: "offsets of the tensors of a group in elements",
	Formula: `
		splits_to_offsets computes the offset of each tensor of a group, in elements:

		  output[0] = 0      output[i+1] = output[i] + first_dims[i]·logical_last_dim

		A product or sum beyond the range of i64 is an argument error.

		Arguments:

		  output  one more than first_dims

		Example:

		  first_dims=(2 0 3) logical_last_dim=4 → output=i64[0 8 8 20]
	`,
	Check: func(c *opregistry.Check, a *SplitsToOffsetsArgs) {
		c.Elements("output", a.Output, len(a.FirstDims)+1, "one more than first_dims")
		left := math.MaxInt
		for i, n := range a.FirstDims {
			if c.OK() && (n < 0 || a.LogicalLastDim > 0 && n > left/a.LogicalLastDim) {
				c.Fail(check.Indexed("first_dims", i), "a length >= 0 with which the offsets fit in i64", "%d", n)
			}
			left -= n * a.LogicalLastDim
		}
	},
	Tolerance: opregistry.Exact("integers"),
})
