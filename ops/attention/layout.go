package attention

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// FAPrepareFwdArgs are the arguments of FAPrepareFwd.
type FAPrepareFwdArgs struct {
	QKVI   *tensor.Tensor `op:"0 qkvi read any [s b n 3*h]"`
	Output *tensor.Tensor `op:"1 output write =qkvi [3 b s n h]"`
}

// FAPrepareFwd takes an interleaved projection apart.
var FAPrepareFwd = opregistry.NewOp("fa_prepare_fwd", opregistry.Schema[FAPrepareFwdArgs]{
	Doc: "query, key and value out of an interleaved projection",
	Formula: `
		fa_prepare_fwd takes an interleaved projection apart:

		  output[p,b,s,n,i] = qkvi[s,b,n,p·h + i]      p = 0, 1, 2 for query, key, value

		Bit for bit, in any dtype. Source: TransformerEngine 2.14, fa_prepare_fwd.

		Example:

		  qkvi=[[[[1 2 3]]] [[[4 5 6]]]] → output=[[[[[1]] [[4]]]] [[[[2]] [[5]]]] [[[[3]] [[6]]]]]
	`,
	Tolerance: opregistry.Exact("a copy"),
})

// FAPrepareBwdArgs are the arguments of FAPrepareBwd.
type FAPrepareBwdArgs struct {
	Q      *tensor.Tensor `op:"0 q read any [b s n h]"`
	K      *tensor.Tensor `op:"1 k read =q [b s n h]"`
	V      *tensor.Tensor `op:"2 v read =q [b s n h]"`
	Output *tensor.Tensor `op:"3 output write =q [s b n 3*h]"`
}

// FAPrepareBwd is the gradient of FAPrepareFwd, which puts the parts together again.
var FAPrepareBwd = opregistry.NewOp("fa_prepare_bwd", opregistry.Schema[FAPrepareBwdArgs]{
	Doc: "gradient of fa_prepare_fwd",
	Formula: `
		fa_prepare_bwd is the gradient of fa_prepare_fwd, which puts the parts together again:

		  output[s,b,n,p·h + i] = (q, k, v)[p][b,s,n,i]

		Bit for bit, in any dtype. Source: TransformerEngine 2.14, fa_prepare_bwd.

		Arguments:

		  q  the gradient of the query

		Example:

		  q=[[[[1]] [[4]]]] k=[[[[2]] [[5]]]] v=[[[[3]] [[6]]]] → output=[[[[1 2 3]]] [[[4 5 6]]]]
	`,
	Tolerance: opregistry.Exact("a copy"),
})

// ConvertTHDArgs are the arguments of ConvertTHDToBSHD and ConvertBSHDToTHD.
type ConvertTHDArgs struct {
	Tensor    *tensor.Tensor `op:"0 tensor read any"`      // [t, h, d], or [b, s, h, d]
	CuSeqlens *tensor.Tensor `op:"1 cu_seqlens read i32"`  // [b+1]
	Output    *tensor.Tensor `op:"2 output write =tensor"` // [b, s, h, d], or [t, h, d]
}

// ConvertTHDToBSHD gives each packed sequence a row of its own.
var ConvertTHDToBSHD = newConvertTHD("convert_thd_to_bshd", "packed sequences with a row each", `
		convert_thd_to_bshd gives each packed sequence a row of its own:

		  output[b,i] = tensor[cu_seqlens[b] + i] for i < len(b), else 0

		Bit for bit, in any dtype. A sequence longer than s, and sequences of more than t tokens,
		are argument errors. Source: TransformerEngine 2.14, convert_thd_to_bshd.

		Arguments:

		  tensor      [t, h, d], or [b, s, h, d]
		  cu_seqlens  [b+1]
		  output      [b, s, h, d], or [t, h, d]

		Example:

		  tensor=[[[1]] [[2]] [[3]]] cu_seqlens=i32[0 1 3] → output=[[[[1]] [[0]]] [[[2]] [[3]]]]
	`, false)

// ConvertBSHDToTHD packs sequences that have a row each.
var ConvertBSHDToTHD = newConvertTHD("convert_bshd_to_thd", "sequences with a row each, packed", `
		convert_bshd_to_thd packs sequences that have a row each:

		  output[cu_seqlens[b] + i] = tensor[b,i] for i < len(b)

		Tokens of output that belong to no sequence are 0. Operands are those of
		convert_thd_to_bshd. Source: TransformerEngine 2.14, convert_bshd_to_thd.

		Arguments:

		  tensor      [t, h, d], or [b, s, h, d]
		  cu_seqlens  [b+1]
		  output      [b, s, h, d], or [t, h, d]

		Example:

		  tensor=[[[[1]] [[0]]] [[[2]] [[3]]]] cu_seqlens=i32[0 1 3] → output=[[[1]] [[2]] [[3]]]
	`, true)

func newConvertTHD(name, doc, formula string, pack bool) *opregistry.Op[ConvertTHDArgs] {
	where := "tensor [t h d]; output [b s h d]"
	if pack {
		where = "tensor [b s h d]; output [t h d]"
	}
	return opregistry.NewOp(name, opregistry.Schema[ConvertTHDArgs]{
		Doc: doc, Formula: formula, Tolerance: opregistry.Exact("a copy"), Where: where,
		Check: func(c *opregistry.Check, a *ConvertTHDArgs) {
			packed, rows := a.Tensor, a.Output
			packedName, rowsName := "tensor", "output"
			if pack {
				packed, rows, packedName, rowsName = rows, packed, rowsName, packedName
			}
			t, r := packed.Shape(), rows.Shape()
			rising(c, "cu_seqlens", a.CuSeqlens)
			if !c.OK() || !c.Elements("cu_seqlens", a.CuSeqlens, r[0]+1, "one per batch and one more") {
				return
			}
			if last := lastLength(a.CuSeqlens); last > t[0] {
				c.Fail("cu_seqlens", "at most the "+check.Itoa(t[0])+" tokens of "+packedName, "%d", last)
			}
			for b := 0; c.OK() && b < r[0]; b++ {
				if n := check.Element(a.CuSeqlens, b+1) - check.Element(a.CuSeqlens, b); n > r[1] {
					c.Fail("cu_seqlens", "sequences of at most the "+check.Itoa(r[1])+" positions of "+rowsName, "%d", n)
				}
			}
		},
	})
}
