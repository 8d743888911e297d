package moe

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MoEPermuteFwdArgs are the arguments of MoEPermuteFwd.
type MoEPermuteFwdArgs struct {
	Input    *tensor.Tensor // [tokens, h]
	Indices  *tensor.Tensor // i32 [tokens, topk]: the experts of each token
	Output   *tensor.Tensor // [rows, h]; TransformerEngine's num_out_tokens is its number of rows
	RowIDMap *tensor.Tensor // i32, topk·tokens elements
	Saved    *opregistry.Saved
}

// MoEPermuteFwd copies the rows of tokens to their experts, expert by expert:
//
//	pos[t,k]            = rank of (t, k) when all pairs are sorted by indices[t,k],
//	                      those of one expert by t·topk + k
//	row_id_map[k·tokens + t] = pos[t,k], or −1 when there is no such row
//	out[pos[t,k],:]     = input[t,:]
//
// Rows beyond the last of out are dropped; out has at most tokens·topk rows. Input and indices are
// read, out and row_id_map are written; all are disjoint. Rows are copied bit for bit, in any
// compute dtype. Source: TransformerEngine 2.14.
var MoEPermuteFwd = opregistry.NewOp("moe_permute_fwd", opregistry.Schema[MoEPermuteFwdArgs]{
	Doc:     "rows of tokens sorted by the experts that they go to",
	Family:  "moe_permute",
	Forward: true,
	Saved:   func(a MoEPermuteFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a MoEPermuteFwdArgs) error {
		c := check.Call{Op: "moe_permute_fwd"}
		rowsAlike(&c, "input", a.Input, "output", a.Output)
		if c.DType("indices", a.Indices, tensor.I32) && c.Rank("indices", a.Indices, 2) && a.Indices.Shape()[0] != a.Input.Shape()[0] {
			c.Fail("indices", "a row for each of "+check.Itoa(a.Input.Shape()[0])+" tokens", "%v", a.Indices)
		}
		if c.Err == nil && a.Output.Shape()[0] > a.Indices.NumElements() {
			c.Fail("output", "at most "+check.Itoa(a.Indices.NumElements())+" rows, one a token and expert", "%v", a.Output)
		}
		if c.DType("row_id_map", a.RowIDMap, tensor.I32) && c.Rank("row_id_map", a.RowIDMap, 1) {
			c.Elements("row_id_map", a.RowIDMap, a.Indices.NumElements(), "one a token and expert")
		}
		c.Apart([]check.Named{{Name: "output", Tensor: a.Output}, {Name: "row_id_map", Tensor: a.RowIDMap}}, []check.Named{{Name: "input", Tensor: a.Input}, {Name: "indices", Tensor: a.Indices}})
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a MoEPermuteFwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("input", a.Input).Read("indices", a.Indices).Write("output", a.Output).Write("row_id_map", a.RowIDMap)
	},
})

// MoEUnpermuteArgs are the arguments of MoEPermuteBwd and MoEUnpermuteFwd.
type MoEUnpermuteArgs struct {
	Input    *tensor.Tensor // [rows, h], sorted by expert
	RowIDMap *tensor.Tensor // i32, topk·tokens elements, from MoEPermuteFwd
	Prob     *tensor.Tensor // f32 [tokens, topk], nil for 1
	Output   *tensor.Tensor // [tokens, h]
	Saved    *opregistry.Saved
}

// MoEUnpermuteFwd sums the outputs of the experts for each token:
//
//	out[t,:] = Σ_k prob[t,k] · input[row_id_map[k·tokens + t],:]
//
// Entries of −1 in the map are skipped; a token without other entries gets 0. Input, row_id_map and
// prob are read, out is written; all are disjoint. Input and out have one compute dtype; the sum is
// kept in f32 or better, where TransformerEngine keeps it in the dtype of input, and rounded once.
// An entry of the map outside [−1, rows) is an argument error. Source: TransformerEngine 2.14.
var MoEUnpermuteFwd = newUnpermute("moe_unpermute_fwd", "rows of experts added up by token")

// MoEPermuteBwd is the gradient of MoEPermuteFwd with respect to its input: MoEUnpermuteFwd of the
// gradient of its output.
var MoEPermuteBwd = newUnpermute("moe_permute_bwd", "gradient of moe_permute_fwd")

func newUnpermute(name, doc string) *opregistry.Op[MoEUnpermuteArgs] {
	return opregistry.NewOp(name, opregistry.Schema[MoEUnpermuteArgs]{
		Doc:    doc,
		Family: "moe_permute",
		Saved:  func(a MoEUnpermuteArgs) *opregistry.Saved { return a.Saved },
		Validate: func(a MoEUnpermuteArgs) error {
			c := check.Call{Op: name}
			rowsAlike(&c, "input", a.Input, "output", a.Output)
			rowIDMap(&c, a.RowIDMap, "input", a.Input, "output", a.Output)
			if a.Prob != nil {
				prob(&c, "prob", a.Prob, a.RowIDMap, "output", a.Output)
			}
			c.Apart([]check.Named{{Name: "output", Tensor: a.Output}}, []check.Named{{Name: "input", Tensor: a.Input}, {Name: "row_id_map", Tensor: a.RowIDMap}, {Name: "prob", Tensor: a.Prob}})
			c.Saved(a.Saved)
			return c.Err
		},
		Operands: func(a MoEUnpermuteArgs) []opregistry.Operand {
			return check.Operands{}.Read("input", a.Input).Read("row_id_map", a.RowIDMap).Read("prob", a.Prob).Write("output", a.Output)
		},
	})
}

// MoEUnpermuteBwdArgs are the arguments of MoEUnpermuteBwd.
type MoEUnpermuteBwdArgs struct {
	InputBwd *tensor.Tensor // [tokens, h], the gradient of MoEUnpermuteFwd's output
	InputFwd *tensor.Tensor // [rows, h], the input of MoEUnpermuteFwd
	RowIDMap *tensor.Tensor // i32, topk·tokens elements, from MoEPermuteFwd
	Prob     *tensor.Tensor // f32 [tokens, topk], nil for 1
	ActGrad  *tensor.Tensor // [rows, h], the gradient of InputFwd
	ProbGrad *tensor.Tensor // f32 [tokens, topk], given when Prob is
	Saved    *opregistry.Saved
}

// MoEUnpermuteBwd is the gradient of MoEUnpermuteFwd. With r = row_id_map[k·tokens + t]:
//
//	act_grad[r,:]  = prob[t,k] · input_bwd[t,:]
//	prob_grad[t,k] = Σ_i input_bwd[t,i] · input_fwd[r,i], 0 where r = −1
//
// and rows of act_grad that no entry of the map names are 0. The entries other than −1 must be
// distinct. The inputs, row_id_map and prob are read, act_grad and prob_grad are written; the
// written operands are disjoint from all others. Dtypes and sums are those of MoEUnpermuteFwd.
// Source: TransformerEngine 2.14.
var MoEUnpermuteBwd = opregistry.NewOp("moe_unpermute_bwd", opregistry.Schema[MoEUnpermuteBwdArgs]{
	Doc:    "gradient of moe_unpermute_fwd",
	Family: "moe_permute",
	Saved:  func(a MoEUnpermuteBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a MoEUnpermuteBwdArgs) error {
		c := check.Call{Op: "moe_unpermute_bwd"}
		rowsAlike(&c, "input_bwd", a.InputBwd, "input_fwd", a.InputFwd)
		rowIDMap(&c, a.RowIDMap, "input_fwd", a.InputFwd, "input_bwd", a.InputBwd)
		attention.Like(&c, "act_grad", a.ActGrad, "input_fwd", a.InputFwd)
		switch {
		case a.Prob != nil:
			prob(&c, "prob", a.Prob, a.RowIDMap, "input_bwd", a.InputBwd)
			prob(&c, "prob_grad", a.ProbGrad, a.RowIDMap, "input_bwd", a.InputBwd)
		case a.ProbGrad != nil:
			c.Fail("prob_grad", "nil without prob", "%v", a.ProbGrad)
		}
		c.Apart([]check.Named{{Name: "act_grad", Tensor: a.ActGrad}, {Name: "prob_grad", Tensor: a.ProbGrad}},
			[]check.Named{{Name: "input_bwd", Tensor: a.InputBwd}, {Name: "input_fwd", Tensor: a.InputFwd}, {Name: "row_id_map", Tensor: a.RowIDMap}, {Name: "prob", Tensor: a.Prob}})
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a MoEUnpermuteBwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("input_bwd", a.InputBwd).Read("input_fwd", a.InputFwd).Read("row_id_map", a.RowIDMap).
			Read("prob", a.Prob).Write("act_grad", a.ActGrad).Write("prob_grad", a.ProbGrad)
	},
})

// rowsAlike requires two matrices of one compute dtype and rows of one length.
func rowsAlike(c *check.Call, name string, t *tensor.Tensor, otherName string, other *tensor.Tensor) {
	if !c.Compute(name, t) || !c.Rank(name, t, 2) || !c.Compute(otherName, other) || !c.Rank(otherName, other, 2) {
		return
	}
	c.SameDType(otherName, other, name, t)
	if c.Err == nil && other.Shape()[1] != t.Shape()[1] {
		c.Fail(otherName, "rows of "+check.Itoa(t.Shape()[1])+", as "+name, "%v", other)
	}
}

// rowIDMap requires a whole number of entries per token, each −1 or a row.
func rowIDMap(c *check.Call, t *tensor.Tensor, rowsName string, rows *tensor.Tensor, tokensName string, tokens *tensor.Tensor) {
	const name = "row_id_map"
	if !c.DType(name, t, tensor.I32) || !c.Rank(name, t, 1) {
		return
	}
	n := tokens.Shape()[0]
	if n == 0 && t.NumElements() > 0 || n > 0 && t.NumElements()%n != 0 {
		c.Fail(name, "as many entries for each of the "+check.Itoa(n)+" rows of "+tokensName, "%v", t)
	}
	for i := 0; c.Err == nil && i < t.NumElements(); i++ {
		if r := check.Element(t, i); r < -1 || r >= rows.Shape()[0] {
			c.Fail(name, "-1 or a row of "+rowsName+", below "+check.Itoa(rows.Shape()[0]), "%d at element %d", r, i)
		}
	}
}

// prob requires a number for each token and expert.
func prob(c *check.Call, name string, t, rowIDMap *tensor.Tensor, tokensName string, tokens *tensor.Tensor) {
	if !c.DType(name, t, tensor.F32) || !c.Rank(name, t, 2) {
		return
	}
	if t.Shape()[0] != tokens.Shape()[0] {
		c.Fail(name, "a row for each of the "+check.Itoa(tokens.Shape()[0])+" rows of "+tokensName, "%v", t)
	}
	c.Elements(name, t, rowIDMap.NumElements(), "as row_id_map")
}
