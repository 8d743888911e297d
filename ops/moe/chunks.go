package moe

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MoESortChunksFwdArgs are the arguments of MoESortChunksFwd.
type MoESortChunksFwdArgs struct {
	Input         *tensor.Tensor `op:"0 input read compute [rows h]"`
	SplitSizes    *tensor.Tensor `op:"1 split_sizes read index [chunks]"`
	SortedIdxs    *tensor.Tensor `op:"2 sorted_idxs read index [chunks]"`
	Probs         *tensor.Tensor `op:"3 probs read f32 [rows] ?"`
	Output        *tensor.Tensor `op:"4 output write =input [rows h]"`
	OutputProbs   *tensor.Tensor `op:"5 output_probs write f32 [rows] ?:probs"`
	InverseRowMap *tensor.Tensor `op:"6 inverse_row_map write index [rows]"`
	Saved         *opregistry.Saved
}

// MoESortChunksFwd reorders chunks of rows, such as from [rank][expert] to [expert][rank].
var MoESortChunksFwd = opregistry.NewOp("moe_sort_chunks_fwd", opregistry.Schema[MoESortChunksFwdArgs]{
	Doc: "chunks of rows in another order",
	Formula: `
		moe_sort_chunks_fwd reorders chunks of rows, such as from [rank][expert] to [expert][rank]:
		chunk sorted_idxs[0] of the input comes first, and so on. With input row j at output row i:

		  output[i,:] = input[j,:]    output_probs[i] = probs[j]    inverse_row_map[j] = i

		Everything is copied bit for bit. Source: TransformerEngine-FL, September 2026.

		Arguments:

		  split_sizes  the rows of each chunk
		  sorted_idxs  the chunk at each position of the output: each chunk once

		Example:

		  input=[[1] [2] [3]] split_sizes=i32[1 2] sorted_idxs=i32[1 0] probs=[0.1 0.2 0.3] →
		    output=[[2] [3] [1]] output_probs=[0.2 0.3 0.1] inverse_row_map=i32[2 0 1]
	`,
	Family:    "moe_sort_chunks",
	Forward:   true,
	Check:     sortedChunks,
	Tolerance: opregistry.Exact("a copy"),
})

func sortedChunks(c *opregistry.Check, a *MoESortChunksFwdArgs) {
	rows, chunks, sum := a.Input.Shape()[0], a.SplitSizes.NumElements(), 0
	for i := 0; sum >= 0 && i < chunks; i++ {
		if n := check.Integer(a.SplitSizes, i); n < 0 || n > rows-sum {
			sum = -1
		} else {
			sum += n
		}
	}
	if sum != rows {
		c.Fail("split_sizes", "sizes that add up to "+check.Itoa(rows), "%v", check.Host(a.SplitSizes).Float64s())
	}
	within(c, "sorted_idxs", a.SortedIdxs, chunks)
	distinct(c, "sorted_idxs", a.SortedIdxs)
}

// MoESortChunksBwdArgs are the arguments of MoESortChunksBwd.
type MoESortChunksBwdArgs struct {
	GradOutput    *tensor.Tensor `op:"0 grad_output read compute [rows h]"`
	GradProbs     *tensor.Tensor `op:"1 grad_probs read f32 [rows] ?"`
	InverseRowMap *tensor.Tensor `op:"2 inverse_row_map read index [rows]"`
	GradInput     *tensor.Tensor `op:"3 grad_input write =grad_output [rows h]"`
	GradInProbs   *tensor.Tensor `op:"4 grad_input_probs write f32 [rows] ?:grad_probs was=grad_in_probs"`
	Saved         *opregistry.Saved
}

// MoESortChunksBwd is the gradient of MoESortChunksFwd.
var MoESortChunksBwd = opregistry.NewOp("moe_sort_chunks_bwd", opregistry.Schema[MoESortChunksBwdArgs]{
	Doc: "gradient of moe_sort_chunks_fwd",
	Formula: `
		moe_sort_chunks_bwd is the gradient of moe_sort_chunks_fwd:

		  grad_input[j,:] = grad_output[inverse_row_map[j],:]
		  grad_input_probs[j] = grad_probs[inverse_row_map[j]]

		An entry of the map outside [0, rows) is an argument error.

		Arguments:

		  inverse_row_map  from moe_sort_chunks_fwd

		Example:

		  grad_output=[[2] [3] [1]] inverse_row_map=i32[2 0 1] → grad_input=[[1] [2] [3]]
	`,
	Family: "moe_sort_chunks",
	Check: func(c *opregistry.Check, a *MoESortChunksBwdArgs) {
		within(c, "inverse_row_map", a.InverseRowMap, a.GradOutput.Shape()[0])
	},
	Tolerance: opregistry.Exact("a copy"),
})

// MultiRowPaddingArgs are the arguments of FusedMultiRowPadding and FusedMultiRowUnpadding.
type MultiRowPaddingArgs struct {
	Input      *tensor.Tensor `op:"0 input read any [rows h]"`
	Output     *tensor.Tensor `op:"1 output write =input [output_rows h]"`
	InputRows  []int          `op:"2 input_rows"`  // TransformerEngine's input_row_list: the rows of each group of the input
	OutputRows []int          `op:"3 output_rows"` // padded_input_row_list or unpadded_input_row_list: those of the output
}

// FusedMultiRowPadding copies groups of rows into longer groups.
var FusedMultiRowPadding = newMultiRow("fused_multi_row_padding", "groups of rows padded with zeros", `
		fused_multi_row_padding copies groups of rows into longer groups:

		  output[first'(g)+i,:] = input[first(g)+i,:] for i < input_rows[g], else 0

		for i < output_rows[g], where first(g) and first'(g) are the numbers of input and output
		rows in the groups before g. Rows are copied bit for bit. Source: TransformerEngine 2.14,
		fused_multi_row_padding.

		Arguments:

		  input_rows   TransformerEngine's input_row_list: the rows of each group of the input
		  output_rows  padded_input_row_list or unpadded_input_row_list: those of the output

		Example:

		  input=[[1] [2] [3]] input_rows=(1 2) output_rows=(2 2) → output=[[1] [0] [2] [3]]
	`, false)

// FusedMultiRowUnpadding copies the first rows of groups into shorter groups.
var FusedMultiRowUnpadding = newMultiRow("fused_multi_row_unpadding", "groups of rows without their padding", `
		fused_multi_row_unpadding copies the first rows of groups into shorter groups:

		  output[first'(g)+i,:] = input[first(g)+i,:] for i < output_rows[g]

		It is the inverse of fused_multi_row_padding and has the same operands. Source:
		TransformerEngine 2.14, fused_multi_row_unpadding.

		Arguments:

		  input_rows   TransformerEngine's input_row_list: the rows of each group of the input
		  output_rows  padded_input_row_list or unpadded_input_row_list: those of the output

		Example:

		  input=[[1] [0] [2] [3]] input_rows=(2 2) output_rows=(1 2) → output=[[1] [2] [3]]
	`, true)

func newMultiRow(name, doc, formula string, shorter bool) *opregistry.Op[MultiRowPaddingArgs] {
	return opregistry.NewOp(name, opregistry.Schema[MultiRowPaddingArgs]{
		Doc: doc, Formula: formula,
		Check: func(c *opregistry.Check, a *MultiRowPaddingArgs) {
			if len(a.OutputRows) != len(a.InputRows) {
				c.Fail("output_rows", check.Itoa(len(a.InputRows))+" groups, as input_rows", "%d", len(a.OutputRows))
			}
			rowGroups(c, "input_rows", a.InputRows, "input", a.Input)
			rowGroups(c, "output_rows", a.OutputRows, "output", a.Output)
			for g := 0; c.OK() && g < len(a.InputRows); g++ {
				if in, out := a.InputRows[g], a.OutputRows[g]; shorter && out > in {
					c.Fail("output_rows", "at most the "+check.Itoa(in)+" rows of group "+check.Itoa(g), "%d", out)
				} else if !shorter && out < in {
					c.Fail("output_rows", "at least the "+check.Itoa(in)+" rows of group "+check.Itoa(g), "%d", out)
				}
			}
		},
		Tolerance: opregistry.Exact("a copy"),
	})
}

// rowGroups requires groups that together have all rows of a matrix.
func rowGroups(c *opregistry.Check, name string, groups []int, matrixName string, t *tensor.Tensor) {
	rows, sum := t.Shape()[0], 0
	for _, n := range groups {
		if n < 0 || n > rows-sum {
			c.Fail(name, "numbers that add up to the "+check.Itoa(rows)+" rows of "+matrixName, "%v", groups)
			return
		}
		sum += n
	}
	if sum != rows {
		c.Fail(name, "numbers that add up to the "+check.Itoa(rows)+" rows of "+matrixName, "%v", groups)
	}
}

// distinct requires that no value occurs twice in a vector of n values in [0, n), where it lies in
// host memory.
func distinct(c *opregistry.Check, name string, t *tensor.Tensor) {
	const block = 1024
	if !t.OnHost() {
		return
	}
	n := t.NumElements()
	for base := 0; c.OK() && base < n; base += block {
		var seen [block]bool
		for i := range n {
			v := check.Integer(t, i) - base
			if v < 0 || v >= block {
				continue
			}
			if seen[v] {
				c.Fail(name, "each value once", "%d twice", v+base)
				return
			}
			seen[v] = true
		}
	}
}
