package ops

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
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
		c := check{op: "fa_prepare_fwd"}
		if !c.given("qkvi", a.QKVI) || !c.rank("qkvi", a.QKVI, 4) || !c.given("output", a.Output) {
			return c.err
		}
		c.sameDType("output", a.Output, "qkvi", a.QKVI)
		s := a.QKVI.Shape()
		if s[3]%3 != 0 {
			c.fail("qkvi", "a last axis that is a multiple of 3", "%v", a.QKVI)
		}
		c.axes("output", a.Output, 3, s[1], s[0], s[2], s[3]/3)
		c.disjoint("output", a.Output, "qkvi", a.QKVI)
		return c.err
	},
	Operands: func(a FAPrepareFwdArgs) []opregistry.Operand {
		return operands{}.read("qkvi", a.QKVI).write("output", a.Output)
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
		c := check{op: "fa_prepare_bwd"}
		if !c.given("q", a.Q) || !c.rank("q", a.Q, 4) {
			return c.err
		}
		s := a.Q.Shape()
		for _, x := range [...]named{{"k", a.K}, {"v", a.V}} {
			if c.given(x.name, x.t) {
				c.sameDType(x.name, x.t, "q", a.Q)
				c.sameShape(x.name, x.t, "q", a.Q)
			}
		}
		if c.given("output", a.Output) {
			c.sameDType("output", a.Output, "q", a.Q)
			c.axes("output", a.Output, s[1], s[0], s[2], 3*s[3])
		}
		c.apart([]named{{"output", a.Output}}, []named{{"q", a.Q}, {"k", a.K}, {"v", a.V}})
		return c.err
	},
	Operands: func(a FAPrepareBwdArgs) []opregistry.Operand {
		return operands{}.read("q", a.Q).read("k", a.K).read("v", a.V).write("output", a.Output)
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
			c := check{op: name}
			packed, rows := named{"tensor", a.Tensor}, named{"output", a.Output}
			if pack {
				packed, rows = rows, packed
			}
			if !c.given(packed.name, packed.t) || !c.rank(packed.name, packed.t, 3) || !c.given(rows.name, rows.t) || !c.rank(rows.name, rows.t, 4) {
				return c.err
			}
			c.sameDType("output", a.Output, "tensor", a.Tensor)
			t, r := packed.t.Shape(), rows.t.Shape()
			if r[2] != t[1] || r[3] != t[2] {
				c.fail("output", "the heads of tensor", "%v", a.Output)
			}
			c.rising("cu_seqlens", a.CuSeqlens)
			if c.err == nil {
				c.elements("cu_seqlens", a.CuSeqlens, r[0]+1, "one a batch and one more")
			}
			if c.err == nil && lastLength(a.CuSeqlens) > t[0] {
				c.fail("cu_seqlens", "at most the "+itoa(t[0])+" tokens of "+packed.name, "%d", lastLength(a.CuSeqlens))
			}
			for b := 0; c.err == nil && b < r[0]; b++ {
				if n := element(a.CuSeqlens, b+1) - element(a.CuSeqlens, b); n > r[1] {
					c.fail("cu_seqlens", "sequences of at most the "+itoa(r[1])+" positions of "+rows.name, "%d", n)
				}
			}
			c.apart([]named{{"output", a.Output}}, []named{{"tensor", a.Tensor}, {"cu_seqlens", a.CuSeqlens}})
			return c.err
		},
		Operands: func(a ConvertTHDArgs) []opregistry.Operand {
			return operands{}.read("tensor", a.Tensor).read("cu_seqlens", a.CuSeqlens).write("output", a.Output)
		},
	})
}

// axes requires a shape.
func (c *check) axes(name string, t *tensor.Tensor, want ...int) {
	if c.err == nil && !t.Shape().Equal(want) {
		c.fail(name, fmt.Sprint(append([]int(nil), want...)), "%v", t)
	}
}
