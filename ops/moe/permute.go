package moe

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MoEPermuteFwdArgs are the arguments of MoEPermuteFwd.
type MoEPermuteFwdArgs struct {
	Input    *tensor.Tensor `op:"0 input read compute [tokens h]"`
	Indices  *tensor.Tensor `op:"1 indices read i32 [tokens topk]"`
	Output   *tensor.Tensor `op:"2 output write =input [rows h]"`
	RowIDMap *tensor.Tensor `op:"3 row_id_map write i32 [entries]"`
	Saved    *opregistry.Saved
}

// MoEPermuteFwd copies the rows of tokens to their experts, expert by expert.
var MoEPermuteFwd = opregistry.NewOp("moe_permute_fwd", opregistry.Schema[MoEPermuteFwdArgs]{
	Doc: "rows of tokens sorted by the experts that they go to",
	Formula: `
		moe_permute_fwd copies the rows of tokens to their experts, expert by expert:

		  pos[t,k]            = rank of (t, k) when all pairs are sorted by indices[t,k],
		                        those of one expert by t·topk + k
		  row_id_map[k·tokens + t] = pos[t,k], or −1 when there is no such row
		  out[pos[t,k],:]     = input[t,:]

		Rows beyond the last of out are dropped; out has at most tokens·topk rows. Rows are copied
		bit for bit. Source: TransformerEngine 2.14.

		Arguments:

		  indices     the experts of each token
		  output      TransformerEngine's num_out_tokens is its number of rows
		  row_id_map  tokens·topk of them

		Example:

		  input=[[1 2] [3 4]] indices=i32[[1] [0]] → output=[[3 4] [1 2]] row_id_map=i32[1 0]
	`,
	Family:  "moe_permute",
	Forward: true,
	Check: func(c *opregistry.Check, a *MoEPermuteFwdArgs) {
		n := a.Indices.NumElements()
		if a.Output.Shape()[0] > n {
			c.Fail("output", "at most "+check.Itoa(n)+" rows, one per token and expert", "%v", a.Output)
		}
		c.Elements("row_id_map", a.RowIDMap, n, "one per token and expert")
	},
	Tolerance: opregistry.Exact("a copy"),
})

// MoEUnpermuteArgs are the arguments of MoEPermuteBwd and MoEUnpermuteFwd.
type MoEUnpermuteArgs struct {
	Input    *tensor.Tensor `op:"0 input read compute [rows h]"`   // sorted by expert
	RowIDMap *tensor.Tensor `op:"1 row_id_map read i32 [entries]"` // tokens·topk of them, from MoEPermuteFwd
	Prob     *tensor.Tensor `op:"2 prob read f32 [tokens topk] ?"` // nil for 1
	Output   *tensor.Tensor `op:"3 output write =input [tokens h]"`
	Saved    *opregistry.Saved
}

// MoEUnpermuteFwd sums the outputs of the experts for each token.
var MoEUnpermuteFwd = newUnpermute("moe_unpermute_fwd", "rows of experts added up by token", `
		moe_unpermute_fwd sums the outputs of the experts for each token:

		  out[t,:] = Σ_k prob[t,k] · input[row_id_map[k·tokens + t],:]

		Entries of −1 in the map are skipped; a token without other entries gets 0. The sum is kept
		in f32 or better, where TransformerEngine keeps it in the dtype of input, and rounded once.
		An entry of the map outside [−1, rows) is an argument error. Source: TransformerEngine 2.14.

		Arguments:

		  input       sorted by expert
		  row_id_map  tokens·topk of them, from moe_permute_fwd
		  prob        nil for 1

		Example:

		  input=[[3 4] [1 2]] row_id_map=i32[1 0] prob=[[0.5] [2]] → output=[[0.5 1] [6 8]]
	`, "sums of up to 64 products, partial sums near 5")

// MoEPermuteBwd is the gradient of MoEPermuteFwd with respect to its input.
var MoEPermuteBwd = newUnpermute("moe_permute_bwd", "gradient of moe_permute_fwd", `
		moe_permute_bwd is the gradient of moe_permute_fwd with respect to its input:
		moe_unpermute_fwd of the gradient of its output.

		Arguments:

		  input       sorted by expert
		  row_id_map  tokens·topk of them, from moe_permute_fwd
		  prob        nil for 1

		Example:

		  input=[[3 4] [1 2]] row_id_map=i32[1 0] → output=[[1 2] [3 4]]
	`, "sums of up to 64 terms, partial sums near 5")

func newUnpermute(name, doc, formula, reason string) *opregistry.Op[MoEUnpermuteArgs] {
	return opregistry.NewOp(name, opregistry.Schema[MoEUnpermuteArgs]{
		Doc: doc, Formula: formula,
		Family: "moe_permute",
		Check: func(c *opregistry.Check, a *MoEUnpermuteArgs) {
			rowIDMap(c, a.RowIDMap, "input", a.Input, "output", a.Output)
			if a.Prob != nil {
				c.Elements("prob", a.Prob, a.RowIDMap.NumElements(), "as row_id_map")
			}
		},
		Tolerance: opregistry.Arithmetic(5e-6, 2e-6, reason),
	})
}

// MoEUnpermuteBwdArgs are the arguments of MoEUnpermuteBwd.
type MoEUnpermuteBwdArgs struct {
	InputBwd *tensor.Tensor `op:"0 input_bwd read compute [tokens h]"`
	InputFwd *tensor.Tensor `op:"1 input_fwd read =input_bwd [rows h]"`
	RowIDMap *tensor.Tensor `op:"2 row_id_map read i32 [entries]"`
	Prob     *tensor.Tensor `op:"3 prob read f32 [tokens topk] ?"`
	ActGrad  *tensor.Tensor `op:"4 act_grad write =input_fwd [rows h]"`
	ProbGrad *tensor.Tensor `op:"5 prob_grad write f32 [tokens topk] ?:prob"`
	Saved    *opregistry.Saved
}

// MoEUnpermuteBwd is the gradient of MoEUnpermuteFwd.
var MoEUnpermuteBwd = opregistry.NewOp("moe_unpermute_bwd", opregistry.Schema[MoEUnpermuteBwdArgs]{
	Doc: "gradient of moe_unpermute_fwd",
	Formula: `
		moe_unpermute_bwd is the gradient of moe_unpermute_fwd. With r = row_id_map[k·tokens + t]:

		  act_grad[r,:]  = prob[t,k] · input_bwd[t,:]
		  prob_grad[t,k] = Σ_i input_bwd[t,i] · input_fwd[r,i], 0 where r = −1

		and rows of act_grad that no entry of the map names are 0. The entries other than −1 must be
		distinct. Sums are those of moe_unpermute_fwd. Source: TransformerEngine 2.14.

		Arguments:

		  input_bwd   the gradient of moe_unpermute_fwd's output
		  input_fwd   the input of moe_unpermute_fwd
		  row_id_map  tokens·topk of them, from moe_permute_fwd
		  prob        nil for 1
		  act_grad    the gradient of input_fwd

		Example:

		  input_bwd=[[1 1] [2 2]] input_fwd=[[3 4] [1 2]] row_id_map=i32[1 0] prob=[[0.5] [2]] →
		    act_grad=[[4 4] [0.5 0.5]] prob_grad=[[3] [14]]
	`,
	Family: "moe_permute",
	Check: func(c *opregistry.Check, a *MoEUnpermuteBwdArgs) {
		rowIDMap(c, a.RowIDMap, "input_fwd", a.InputFwd, "input_bwd", a.InputBwd)
		if a.Prob != nil {
			c.Elements("prob", a.Prob, a.RowIDMap.NumElements(), "as row_id_map")
		}
	},
	Tolerance: opregistry.Arithmetic(5e-6, 2e-6, "sums of up to 65 products, partial sums near 5"),
})

// rowIDMap requires a whole number of entries per token, each −1 or a row.
func rowIDMap(c *opregistry.Check, t *tensor.Tensor, rowsName string, rows *tensor.Tensor, tokensName string, tokens *tensor.Tensor) {
	const name = "row_id_map"
	n, limit := tokens.Shape()[0], rows.Shape()[0]
	if n == 0 && t.NumElements() > 0 || n > 0 && t.NumElements()%n != 0 {
		c.Fail(name, "as many entries for each of the "+check.Itoa(n)+" rows of "+tokensName, "%v", t)
	}
	for i := 0; c.OK() && t.OnHost() && i < t.NumElements(); i++ {
		if r := check.Element(t, i); r < -1 || r >= limit {
			c.Fail(name, "-1 or a row of "+rowsName+", below "+check.Itoa(limit), "%d at element %d", r, i)
		}
	}
}
