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

// FAPrepareFwd takes an interleaved projection apart:
//
//	output[p,b,s,n,i] = qkvi[s,b,n,p·h + i]      p = 0, 1, 2 for query, key, value
//
// Bit for bit, in any dtype. Source: TransformerEngine 2.14, fa_prepare_fwd.
var FAPrepareFwd = opregistry.NewOp("fa_prepare_fwd", opregistry.Schema[FAPrepareFwdArgs]{
	Doc:       "query, key and value out of an interleaved projection",
	Tolerance: opregistry.Exact("a copy"),
})

// FAPrepareBwdArgs are the arguments of FAPrepareBwd.
type FAPrepareBwdArgs struct {
	Q      *tensor.Tensor `op:"0 q read any [b s n h]"` // the gradient of the query
	K      *tensor.Tensor `op:"1 k read =q [b s n h]"`
	V      *tensor.Tensor `op:"2 v read =q [b s n h]"`
	Output *tensor.Tensor `op:"3 output write =q [s b n 3*h]"`
}

// FAPrepareBwd is the gradient of FAPrepareFwd, which puts the parts together again:
//
//	output[s,b,n,p·h + i] = (q, k, v)[p][b,s,n,i]
//
// Bit for bit, in any dtype. Source: TransformerEngine 2.14, fa_prepare_bwd.
var FAPrepareBwd = opregistry.NewOp("fa_prepare_bwd", opregistry.Schema[FAPrepareBwdArgs]{
	Doc:       "gradient of fa_prepare_fwd",
	Tolerance: opregistry.Exact("a copy"),
})

// ConvertTHDArgs are the arguments of ConvertTHDToBSHD and ConvertBSHDToTHD.
type ConvertTHDArgs struct {
	Tensor    *tensor.Tensor `op:"0 tensor read any"`      // [t, h, d], or [b, s, h, d]
	CuSeqlens *tensor.Tensor `op:"1 cu_seqlens read i32"`  // [b+1]
	Output    *tensor.Tensor `op:"2 output write =tensor"` // [b, s, h, d], or [t, h, d]
}

// ConvertTHDToBSHD gives each packed sequence a row of its own:
//
//	output[b,i] = tensor[cu_seqlens[b] + i] for i < len(b), else 0
//
// Bit for bit, in any dtype. A sequence longer than s, and sequences of more than t tokens, are
// argument errors. Source: TransformerEngine 2.14, convert_thd_to_bshd.
var ConvertTHDToBSHD = newConvertTHD("convert_thd_to_bshd", "packed sequences with a row each", false)

// ConvertBSHDToTHD packs sequences that have a row each:
//
//	output[cu_seqlens[b] + i] = tensor[b,i] for i < len(b)
//
// Tokens of output that belong to no sequence are 0. Operands are those of ConvertTHDToBSHD.
// Source: TransformerEngine 2.14, convert_bshd_to_thd.
var ConvertBSHDToTHD = newConvertTHD("convert_bshd_to_thd", "sequences with a row each, packed", true)

func newConvertTHD(name, doc string, pack bool) *opregistry.Op[ConvertTHDArgs] {
	where := "tensor [t h d]; output [b s h d]"
	if pack {
		where = "tensor [b s h d]; output [t h d]"
	}
	return opregistry.NewOp(name, opregistry.Schema[ConvertTHDArgs]{
		Doc: doc, Tolerance: opregistry.Exact("a copy"), Where: where,
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
