package moe

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
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
		return check.Operands{}.Read("input", a.Input).Read("split_sizes", a.SplitSizes).Read("sorted_idxs", a.SortedIdxs).Read("probs", a.Probs).
			Write("output", a.Output).Write("output_probs", a.OutputProbs).Write("inverse_row_map", a.InverseRowMap)
	},
})

func validateSortChunks(a MoESortChunksFwdArgs) error {
	c := check.Call{Op: "moe_sort_chunks_fwd"}
	if c.Compute("input", a.Input) {
		c.Rank("input", a.Input, 2)
	}
	attention.Like(&c, "output", a.Output, "input", a.Input)
	vector(&c, "split_sizes", a.SplitSizes)
	vector(&c, "sorted_idxs", a.SortedIdxs)
	if c.Err != nil {
		return c.Err
	}
	rows, chunks, sum := a.Input.Shape()[0], a.SplitSizes.NumElements(), 0
	for i := 0; c.Err == nil && i < chunks; i++ {
		if n := check.Integer(a.SplitSizes, i); n < 0 || n > rows-sum {
			c.Fail("split_sizes", "sizes that add up to "+check.Itoa(rows), "%v", a.SplitSizes.Float64s())
		} else {
			sum += n
		}
	}
	if c.Err == nil && sum != rows {
		c.Fail("split_sizes", "sizes that add up to "+check.Itoa(rows), "%v", a.SplitSizes.Float64s())
	}
	c.Elements("sorted_idxs", a.SortedIdxs, chunks, "one a chunk")
	within(&c, "sorted_idxs", a.SortedIdxs, chunks)
	distinct(&c, "sorted_idxs", a.SortedIdxs)
	pairOfProbs(&c, check.Named{Name: "probs", Tensor: a.Probs}, check.Named{Name: "output_probs", Tensor: a.OutputProbs}, rows)
	vector(&c, "inverse_row_map", a.InverseRowMap)
	if c.Err == nil {
		c.Elements("inverse_row_map", a.InverseRowMap, rows, "one a row")
	}
	c.Apart([]check.Named{{Name: "output", Tensor: a.Output}, {Name: "output_probs", Tensor: a.OutputProbs}, {Name: "inverse_row_map", Tensor: a.InverseRowMap}},
		[]check.Named{{Name: "input", Tensor: a.Input}, {Name: "split_sizes", Tensor: a.SplitSizes}, {Name: "sorted_idxs", Tensor: a.SortedIdxs}, {Name: "probs", Tensor: a.Probs}})
	c.Saved(a.Saved)
	return c.Err
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
		c := check.Call{Op: "moe_sort_chunks_bwd"}
		if c.Compute("grad_output", a.GradOutput) {
			c.Rank("grad_output", a.GradOutput, 2)
		}
		attention.Like(&c, "grad_input", a.GradInput, "grad_output", a.GradOutput)
		vector(&c, "inverse_row_map", a.InverseRowMap)
		if c.Err == nil {
			rows := a.GradOutput.Shape()[0]
			c.Elements("inverse_row_map", a.InverseRowMap, rows, "one a row")
			within(&c, "inverse_row_map", a.InverseRowMap, rows)
			pairOfProbs(&c, check.Named{Name: "grad_probs", Tensor: a.GradProbs}, check.Named{Name: "grad_input_probs", Tensor: a.GradInProbs}, rows)
		}
		c.Apart([]check.Named{{Name: "grad_input", Tensor: a.GradInput}, {Name: "grad_input_probs", Tensor: a.GradInProbs}},
			[]check.Named{{Name: "grad_output", Tensor: a.GradOutput}, {Name: "grad_probs", Tensor: a.GradProbs}, {Name: "inverse_row_map", Tensor: a.InverseRowMap}})
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a MoESortChunksBwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("grad_output", a.GradOutput).Read("grad_probs", a.GradProbs).Read("inverse_row_map", a.InverseRowMap).
			Write("grad_input", a.GradInput).Write("grad_input_probs", a.GradInProbs)
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
			c := check.Call{Op: name}
			if !c.Given("input", a.Input) || !c.Rank("input", a.Input, 2) || !c.Given("output", a.Output) || !c.Rank("output", a.Output, 2) {
				return c.Err
			}
			c.SameDType("output", a.Output, "input", a.Input)
			if a.Output.Shape()[1] != a.Input.Shape()[1] {
				c.Fail("output", "rows of "+check.Itoa(a.Input.Shape()[1])+", as input", "%v", a.Output)
			}
			if len(a.OutputRows) != len(a.InputRows) {
				c.Fail("output_rows", check.Itoa(len(a.InputRows))+" groups, as input_rows", "%d", len(a.OutputRows))
			}
			rowGroups(&c, "input_rows", a.InputRows, "input", a.Input)
			rowGroups(&c, "output_rows", a.OutputRows, "output", a.Output)
			for g := 0; c.Err == nil && g < len(a.InputRows); g++ {
				if in, out := a.InputRows[g], a.OutputRows[g]; shorter && out > in {
					c.Fail("output_rows", "at most the "+check.Itoa(in)+" rows of group "+check.Itoa(g), "%d", out)
				} else if !shorter && out < in {
					c.Fail("output_rows", "at least the "+check.Itoa(in)+" rows of group "+check.Itoa(g), "%d", out)
				}
			}
			c.Disjoint("output", a.Output, "input", a.Input)
			return c.Err
		},
		Operands: func(a MultiRowPaddingArgs) []opregistry.Operand {
			return check.Operands{}.Read("input", a.Input).Write("output", a.Output)
		},
	})
}

// rowGroups requires groups that together have all rows of a matrix.
func rowGroups(c *check.Call, name string, groups []int, matrixName string, t *tensor.Tensor) {
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

// vector requires a vector of i32 or i64.
func vector(c *check.Call, name string, t *tensor.Tensor) {
	if c.Index(name, t) {
		c.Rank(name, t, 1)
	}
}

// distinct requires that no value occurs twice in a vector of n values in [0, n).
func distinct(c *check.Call, name string, t *tensor.Tensor) {
	const block = 1024
	n := t.NumElements()
	for base := 0; c.Err == nil && base < n; base += block {
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

// pairOfProbs requires two f32 vectors of n elements, or neither.
func pairOfProbs(c *check.Call, in, out check.Named, n int) {
	if in.Tensor == nil {
		if out.Tensor != nil {
			c.Fail(out.Name, "nil without "+in.Name, "%v", out.Tensor)
		}
		return
	}
	for _, x := range [...]check.Named{in, out} {
		if c.DType(x.Name, x.Tensor, tensor.F32) && c.Rank(x.Name, x.Tensor, 1) {
			c.Elements(x.Name, x.Tensor, n, "one a row")
		}
	}
}
