package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// MoESortChunksFwdArgs are the arguments of MoESortChunksFwd.
type MoESortChunksFwdArgs struct {
	Input         *tensor.Tensor // [rows, h]
	SplitSizes    *tensor.Tensor // i32 or i64 [chunks], the rows of each chunk
	SortedIdxs    *tensor.Tensor // i32 or i64 [chunks], the chunk at each position of the output: each chunk once
	Probs         *tensor.Tensor // f32 [rows], may be nil
	Output        *tensor.Tensor // [rows, h]
	OutputProbs   *tensor.Tensor // f32 [rows], given when Probs is
	InverseRowMap *tensor.Tensor // i32 or i64 [rows]
	Saved         *opregistry.Saved
}

// MoESortChunksFwd reorders chunks of rows, such as from [rank][expert] to [expert][rank]: chunk
// sorted_idxs[0] of the input comes first, and so on. With input row j at output row i:
//
//	output[i,:] = input[j,:]    output_probs[i] = probs[j]    inverse_row_map[j] = i
//
// Input, split_sizes, sorted_idxs and probs are read, the others are written; all are disjoint.
// Everything is copied bit for bit; input may have any compute dtype. Source: TransformerEngine-FL,
// September 2026.
var MoESortChunksFwd = opregistry.NewOp("moe_sort_chunks_fwd", opregistry.Schema[MoESortChunksFwdArgs]{
	Doc:      "chunks of rows in another order",
	Family:   "moe_sort_chunks",
	Forward:  true,
	Saved:    func(a MoESortChunksFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: validateSortChunks,
	Operands: func(a MoESortChunksFwdArgs) []opregistry.Operand {
		return operands{}.read("input", a.Input).read("split_sizes", a.SplitSizes).read("sorted_idxs", a.SortedIdxs).read("probs", a.Probs).
			write("output", a.Output).write("output_probs", a.OutputProbs).write("inverse_row_map", a.InverseRowMap)
	},
})

func validateSortChunks(a MoESortChunksFwdArgs) error {
	c := check{op: "moe_sort_chunks_fwd"}
	if c.compute("input", a.Input) {
		c.rank("input", a.Input, 2)
	}
	c.like("output", a.Output, "input", a.Input)
	c.vector("split_sizes", a.SplitSizes)
	c.vector("sorted_idxs", a.SortedIdxs)
	if c.err != nil {
		return c.err
	}
	rows, chunks, sum := a.Input.Shape()[0], a.SplitSizes.NumElements(), 0
	for i := 0; c.err == nil && i < chunks; i++ {
		if n := integer(a.SplitSizes, i); n < 0 || n > rows-sum {
			c.fail("split_sizes", "sizes that add up to "+itoa(rows), "%v", a.SplitSizes.Float64s())
		} else {
			sum += n
		}
	}
	if c.err == nil && sum != rows {
		c.fail("split_sizes", "sizes that add up to "+itoa(rows), "%v", a.SplitSizes.Float64s())
	}
	c.elements("sorted_idxs", a.SortedIdxs, chunks, "one a chunk")
	c.within("sorted_idxs", a.SortedIdxs, chunks)
	c.distinct("sorted_idxs", a.SortedIdxs)
	c.pairOfProbs(named{"probs", a.Probs}, named{"output_probs", a.OutputProbs}, rows)
	c.vector("inverse_row_map", a.InverseRowMap)
	if c.err == nil {
		c.elements("inverse_row_map", a.InverseRowMap, rows, "one a row")
	}
	c.apart([]named{{"output", a.Output}, {"output_probs", a.OutputProbs}, {"inverse_row_map", a.InverseRowMap}},
		[]named{{"input", a.Input}, {"split_sizes", a.SplitSizes}, {"sorted_idxs", a.SortedIdxs}, {"probs", a.Probs}})
	c.saved(a.Saved)
	return c.err
}

// MoESortChunksBwdArgs are the arguments of MoESortChunksBwd.
type MoESortChunksBwdArgs struct {
	GradOutput    *tensor.Tensor // [rows, h]
	GradProbs     *tensor.Tensor // f32 [rows], may be nil
	InverseRowMap *tensor.Tensor // i32 or i64 [rows], from MoESortChunksFwd
	GradInput     *tensor.Tensor // [rows, h]
	GradInProbs   *tensor.Tensor // f32 [rows], given when GradProbs is
	Saved         *opregistry.Saved
}

// MoESortChunksBwd is the gradient of MoESortChunksFwd:
//
//	grad_input[j,:] = grad_output[inverse_row_map[j],:]
//	grad_input_probs[j] = grad_probs[inverse_row_map[j]]
//
// The gradients of the outputs and inverse_row_map are read, the others are
// written; all are disjoint. Dtypes are those of MoESortChunksFwd. An entry of the map outside
// [0, rows) is an argument error.
var MoESortChunksBwd = opregistry.NewOp("moe_sort_chunks_bwd", opregistry.Schema[MoESortChunksBwdArgs]{
	Doc:    "gradient of moe_sort_chunks_fwd",
	Family: "moe_sort_chunks",
	Saved:  func(a MoESortChunksBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a MoESortChunksBwdArgs) error {
		c := check{op: "moe_sort_chunks_bwd"}
		if c.compute("grad_output", a.GradOutput) {
			c.rank("grad_output", a.GradOutput, 2)
		}
		c.like("grad_input", a.GradInput, "grad_output", a.GradOutput)
		c.vector("inverse_row_map", a.InverseRowMap)
		if c.err == nil {
			rows := a.GradOutput.Shape()[0]
			c.elements("inverse_row_map", a.InverseRowMap, rows, "one a row")
			c.within("inverse_row_map", a.InverseRowMap, rows)
			c.pairOfProbs(named{"grad_probs", a.GradProbs}, named{"grad_input_probs", a.GradInProbs}, rows)
		}
		c.apart([]named{{"grad_input", a.GradInput}, {"grad_input_probs", a.GradInProbs}},
			[]named{{"grad_output", a.GradOutput}, {"grad_probs", a.GradProbs}, {"inverse_row_map", a.InverseRowMap}})
		c.saved(a.Saved)
		return c.err
	},
	Operands: func(a MoESortChunksBwdArgs) []opregistry.Operand {
		return operands{}.read("grad_output", a.GradOutput).read("grad_probs", a.GradProbs).read("inverse_row_map", a.InverseRowMap).
			write("grad_input", a.GradInput).write("grad_input_probs", a.GradInProbs)
	},
})

// MultiRowPaddingArgs are the arguments of FusedMultiRowPadding and FusedMultiRowUnpadding.
type MultiRowPaddingArgs struct {
	Input      *tensor.Tensor // [rows, h]
	Output     *tensor.Tensor // [rows, h]
	InputRows  []int          // TransformerEngine's input_row_list: the rows of each group of the input
	OutputRows []int          // padded_input_row_list or unpadded_input_row_list: those of the output
}

// FusedMultiRowPadding copies groups of rows into longer groups:
//
//	output[first'(g)+i,:] = input[first(g)+i,:] for i < input_rows[g], else 0
//
// for i < output_rows[g], where first(g) and first'(g) are the numbers of input and output rows in
// the groups before g. Input is read, output is written; they are disjoint. Rows are copied bit for
// bit, in any dtype. Source: TransformerEngine 2.14, fused_multi_row_padding.
var FusedMultiRowPadding = newMultiRow("fused_multi_row_padding", "groups of rows padded with zeros", false)

// FusedMultiRowUnpadding copies the first rows of groups into shorter groups:
//
//	output[first'(g)+i,:] = input[first(g)+i,:] for i < output_rows[g]
//
// It is the inverse of FusedMultiRowPadding and has the same operands. Source: TransformerEngine
// 2.14, fused_multi_row_unpadding.
var FusedMultiRowUnpadding = newMultiRow("fused_multi_row_unpadding", "groups of rows without their padding", true)

func newMultiRow(name, doc string, shorter bool) *opregistry.Op[MultiRowPaddingArgs] {
	return opregistry.NewOp(name, opregistry.Schema[MultiRowPaddingArgs]{
		Doc: doc,
		Validate: func(a MultiRowPaddingArgs) error {
			c := check{op: name}
			if !c.given("input", a.Input) || !c.rank("input", a.Input, 2) || !c.given("output", a.Output) || !c.rank("output", a.Output, 2) {
				return c.err
			}
			c.sameDType("output", a.Output, "input", a.Input)
			if a.Output.Shape()[1] != a.Input.Shape()[1] {
				c.fail("output", "rows of "+itoa(a.Input.Shape()[1])+", as input", "%v", a.Output)
			}
			if len(a.OutputRows) != len(a.InputRows) {
				c.fail("output_rows", itoa(len(a.InputRows))+" groups, as input_rows", "%d", len(a.OutputRows))
			}
			c.rowGroups("input_rows", a.InputRows, "input", a.Input)
			c.rowGroups("output_rows", a.OutputRows, "output", a.Output)
			for g := 0; c.err == nil && g < len(a.InputRows); g++ {
				if in, out := a.InputRows[g], a.OutputRows[g]; shorter && out > in {
					c.fail("output_rows", "at most the "+itoa(in)+" rows of group "+itoa(g), "%d", out)
				} else if !shorter && out < in {
					c.fail("output_rows", "at least the "+itoa(in)+" rows of group "+itoa(g), "%d", out)
				}
			}
			c.disjoint("output", a.Output, "input", a.Input)
			return c.err
		},
		Operands: func(a MultiRowPaddingArgs) []opregistry.Operand {
			return operands{}.read("input", a.Input).write("output", a.Output)
		},
	})
}

// rowGroups requires groups that together have all rows of a matrix.
func (c *check) rowGroups(name string, groups []int, matrixName string, t *tensor.Tensor) {
	rows, sum := t.Shape()[0], 0
	for _, n := range groups {
		if n < 0 || n > rows-sum {
			c.fail(name, "numbers that add up to the "+itoa(rows)+" rows of "+matrixName, "%v", groups)
			return
		}
		sum += n
	}
	if sum != rows {
		c.fail(name, "numbers that add up to the "+itoa(rows)+" rows of "+matrixName, "%v", groups)
	}
}

// vector requires a vector of i32 or i64.
func (c *check) vector(name string, t *tensor.Tensor) {
	if c.index(name, t) {
		c.rank(name, t, 1)
	}
}

// distinct requires that no value occurs twice in a vector of n values in [0, n).
func (c *check) distinct(name string, t *tensor.Tensor) {
	const block = 1024
	n := t.NumElements()
	for base := 0; c.err == nil && base < n; base += block {
		var seen [block]bool
		for i := range n {
			v := integer(t, i) - base
			if v < 0 || v >= block {
				continue
			}
			if seen[v] {
				c.fail(name, "each value once", "%d twice", v+base)
				return
			}
			seen[v] = true
		}
	}
}

// pairOfProbs requires two f32 vectors of n elements, or neither.
func (c *check) pairOfProbs(in, out named, n int) {
	if in.t == nil {
		if out.t != nil {
			c.fail(out.name, "nil without "+in.name, "%v", out.t)
		}
		return
	}
	for _, x := range [...]named{in, out} {
		if c.dtype(x.name, x.t, tensor.F32) && c.rank(x.name, x.t, 1) {
			c.elements(x.name, x.t, n, "one a row")
		}
	}
}
