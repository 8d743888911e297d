package attention

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// FAPrepareFwdArgs are the arguments of FAPrepareFwd.
type FAPrepareFwdArgs struct {
	QKVI   *tensor.Tensor // [s, b, n, 3h]
	Output *tensor.Tensor // [3, b, s, n, h]
}

// FAPrepareFwd takes an interleaved projection apart:
//
//	output[p,b,s,n,i] = qkvi[s,b,n,p·h + i]      p = 0, 1, 2 for query, key, value
//
// Qkvi is read, output is written; they are disjoint. Bit for bit, in any dtype.
// Source: TransformerEngine 2.14, fa_prepare_fwd.
var FAPrepareFwd = opregistry.NewOp("fa_prepare_fwd", opregistry.Schema[FAPrepareFwdArgs]{
	Doc: "query, key and value out of an interleaved projection",
	Validate: func(a FAPrepareFwdArgs) error {
		c := check.Call{Op: "fa_prepare_fwd"}
		if !c.Given("qkvi", a.QKVI) || !c.Rank("qkvi", a.QKVI, 4) || !c.Given("output", a.Output) {
			return c.Err
		}
		c.SameDType("output", a.Output, "qkvi", a.QKVI)
		s := a.QKVI.Shape()
		if s[3]%3 != 0 {
			c.Fail("qkvi", "a last axis that is a multiple of 3", "%v", a.QKVI)
		}
		axes(&c, "output", a.Output, 3, s[1], s[0], s[2], s[3]/3)
		c.Disjoint("output", a.Output, "qkvi", a.QKVI)
		return c.Err
	},
	Operands: func(a FAPrepareFwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("qkvi", a.QKVI).Write("output", a.Output)
	},
})

// FAPrepareBwdArgs are the arguments of FAPrepareBwd.
type FAPrepareBwdArgs struct {
	Q, K, V *tensor.Tensor // [b, s, n, h]: the gradients of the three
	Output  *tensor.Tensor // [s, b, n, 3h]
}

// FAPrepareBwd is the gradient of FAPrepareFwd, which puts the parts together again:
//
//	output[s,b,n,p·h + i] = (q, k, v)[p][b,s,n,i]
//
// Q, k and v are read, output is written; all are disjoint. Bit for bit, in any
// dtype. Source: TransformerEngine 2.14, fa_prepare_bwd.
var FAPrepareBwd = opregistry.NewOp("fa_prepare_bwd", opregistry.Schema[FAPrepareBwdArgs]{
	Doc: "gradient of fa_prepare_fwd",
	Validate: func(a FAPrepareBwdArgs) error {
		c := check.Call{Op: "fa_prepare_bwd"}
		if !c.Given("q", a.Q) || !c.Rank("q", a.Q, 4) {
			return c.Err
		}
		s := a.Q.Shape()
		for _, x := range [...]check.Named{{Name: "k", Tensor: a.K}, {Name: "v", Tensor: a.V}} {
			if c.Given(x.Name, x.Tensor) {
				c.SameDType(x.Name, x.Tensor, "q", a.Q)
				c.SameShape(x.Name, x.Tensor, "q", a.Q)
			}
		}
		if c.Given("output", a.Output) {
			c.SameDType("output", a.Output, "q", a.Q)
			axes(&c, "output", a.Output, s[1], s[0], s[2], 3*s[3])
		}
		c.Apart([]check.Named{{Name: "output", Tensor: a.Output}}, []check.Named{{Name: "q", Tensor: a.Q}, {Name: "k", Tensor: a.K}, {Name: "v", Tensor: a.V}})
		return c.Err
	},
	Operands: func(a FAPrepareBwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("q", a.Q).Read("k", a.K).Read("v", a.V).Write("output", a.Output)
	},
})

// ConvertTHDArgs are the arguments of ConvertTHDToBSHD and ConvertBSHDToTHD.
type ConvertTHDArgs struct {
	Tensor    *tensor.Tensor // [t, h, d], or [b, s, h, d]
	CuSeqlens *tensor.Tensor // i32 [b+1]
	Output    *tensor.Tensor // [b, s, h, d], or [t, h, d]
}

// ConvertTHDToBSHD gives each packed sequence a row of its own:
//
//	output[b,i] = tensor[cu_seqlens[b] + i] for i < len(b), else 0
//
// Tensor and cu_seqlens are read, output is written; all are disjoint. Bit for bit, in
// any dtype. A sequence longer than s, and sequences of more than t tokens, are
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
	return opregistry.NewOp(name, opregistry.Schema[ConvertTHDArgs]{
		Doc: doc,
		Validate: func(a ConvertTHDArgs) error {
			c := check.Call{Op: name}
			packed, rows := check.Named{Name: "tensor", Tensor: a.Tensor}, check.Named{Name: "output", Tensor: a.Output}
			if pack {
				packed, rows = rows, packed
			}
			if !c.Given(packed.Name, packed.Tensor) || !c.Rank(packed.Name, packed.Tensor, 3) || !c.Given(rows.Name, rows.Tensor) || !c.Rank(rows.Name, rows.Tensor, 4) {
				return c.Err
			}
			c.SameDType("output", a.Output, "tensor", a.Tensor)
			t, r := packed.Tensor.Shape(), rows.Tensor.Shape()
			if r[2] != t[1] || r[3] != t[2] {
				c.Fail("output", "the heads of tensor", "%v", a.Output)
			}
			rising(&c, "cu_seqlens", a.CuSeqlens)
			if c.Err == nil {
				c.Elements("cu_seqlens", a.CuSeqlens, r[0]+1, "one a batch and one more")
			}
			if c.Err == nil && lastLength(a.CuSeqlens) > t[0] {
				c.Fail("cu_seqlens", "at most the "+check.Itoa(t[0])+" tokens of "+packed.Name, "%d", lastLength(a.CuSeqlens))
			}
			for b := 0; c.Err == nil && b < r[0]; b++ {
				if n := check.Element(a.CuSeqlens, b+1) - check.Element(a.CuSeqlens, b); n > r[1] {
					c.Fail("cu_seqlens", "sequences of at most the "+check.Itoa(r[1])+" positions of "+rows.Name, "%d", n)
				}
			}
			c.Apart([]check.Named{{Name: "output", Tensor: a.Output}}, []check.Named{{Name: "tensor", Tensor: a.Tensor}, {Name: "cu_seqlens", Tensor: a.CuSeqlens}})
			return c.Err
		},
		Operands: func(a ConvertTHDArgs) []opregistry.Operand {
			return check.Operands{}.Read("tensor", a.Tensor).Read("cu_seqlens", a.CuSeqlens).Write("output", a.Output)
		},
	})
}

// axes requires a shape.
func axes(c *check.Call, name string, t *tensor.Tensor, want ...int) {
	if c.Err == nil && !t.Shape().Equal(want) {
		c.Fail(name, fmt.Sprint(append([]int(nil), want...)), "%v", t)
	}
}
