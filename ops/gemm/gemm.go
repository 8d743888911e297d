package gemm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// GenericGemmArgs are the arguments of GenericGemm.
type GenericGemmArgs struct {
	A, B           *tensor.Tensor // [.., cols], at least 2 axes
	TransA, TransB bool
	D              *tensor.Tensor // [.., cols of op(A)]
	Bias           *tensor.Tensor // [cols of D]: added when Grad is false, written when it is true
	Gelu           bool
	GeluIn         *tensor.Tensor // shape of D: written when Grad is false, read when it is true
	Grad           bool
	Accumulate     bool
	Alpha          opregistry.OptionalFloat // 1 when left out
	Beta           opregistry.OptionalFloat // 1 when left out; only with Accumulate
}

// GenericGemm multiplies matrices in TransformerEngine's convention, which is cuBLAS's column-major
// convention applied to row-major tensors:
//
//	D = alpha · op(B) · op(A) + beta · D      op(X) = Xᵀ if transposed, else X
//
// so y = x·Wᵀ is A = W, TransA, B = x. With op(B) m×k and op(A) k×n, D is m×n. Leading axes of B
// beyond two are flattened; D has m·n elements and its last axis has length n. beta is 0 unless
// Accumulate is set.
//
// With Grad false, Bias is added to each row of alpha·op(B)·op(A) before beta·D is added; with
// Gelu, that sum is written to GeluIn and replaced by its tanh-GELU. With Grad true, Bias receives
// the sum over the rows of B, and Gelu multiplies the product by the derivative of the tanh-GELU at
// GeluIn.
//
// A and B have one compute dtype; D, Bias and GeluIn may have another; sums are kept in f32 or
// better and rounded once. A and B are read; D is written, or updated with Accumulate; no operand
// that is written may overlap another. With k = 0 the product is 0. Source: TransformerEngine 2.14,
// generic_gemm.
var GenericGemm = opregistry.NewOp("generic_gemm", opregistry.Schema[GenericGemmArgs]{
	Doc:      "matrix product D = alpha·op(B)·op(A) + beta·D with bias and GELU epilogues",
	Validate: validateGemm,
	Lead:     func(a GenericGemmArgs) *tensor.Tensor { return a.A },
	Operands: func(a GenericGemmArgs) []opregistry.Operand {
		o := check.Operands{}.Read("A", a.A).Read("B", a.B)
		if a.Accumulate {
			o = o.Update("D", a.D)
		} else {
			o = o.Write("D", a.D)
		}
		if a.Grad {
			return o.Write("bias", a.Bias).Read("gelu_in", a.GeluIn)
		}
		return o.Read("bias", a.Bias).Write("gelu_in", a.GeluIn)
	},
})

// Dims returns the sizes of the product: op(B) is m×k, op(A) is k×n, D is m×n.
func (a GenericGemmArgs) Dims() (m, n, k int) {
	m, k = a.B.Shape().Rows(), a.B.Shape().Cols()
	if a.TransB {
		m, k = k, m
	}
	n = a.A.Shape().Cols()
	if a.TransA {
		n = a.A.Shape().Rows()
	}
	return m, n, k
}

func validateGemm(a GenericGemmArgs) error {
	c := check.Call{Op: "generic_gemm"}
	gemm(&c, a, false)
	if !a.Accumulate && a.Beta.Or(0) != 0 {
		c.Fail("beta", "0 without accumulate", "%v", a.Beta.Or(0))
	}
	return c.Err
}

// gemm checks everything but beta. With rows, D may have more rows than the product: the others
// belong to other products.
func gemm(c *check.Call, a GenericGemmArgs, rows bool) {
	if !c.Compute("A", a.A) || !c.Compute("B", a.B) || !c.Compute("D", a.D) ||
		!c.MinRank("A", a.A, 2) || !c.MinRank("B", a.B, 2) || !c.MinRank("D", a.D, 2) {
		return
	}
	c.SameDType("B", a.B, "A", a.A)
	m, n, k := a.Dims()
	if inner := a.A.Shape().Rows(); a.TransA {
		if a.A.Shape().Cols() != k {
			c.Fail("A", "inner size "+check.Itoa(k)+" of op(B)", "%v transposed", a.A)
		}
	} else if inner != k {
		c.Fail("A", "inner size "+check.Itoa(k)+" of op(B)", "%v", a.A)
	}
	if c.Err == nil && (a.D.Shape().Cols() != n || !rows && a.D.NumElements() != m*n) {
		c.Fail("D", "shape ["+check.Itoa(m)+" "+check.Itoa(n)+"]", "%v", a.D)
	}
	if a.Bias != nil && c.Compute("bias", a.Bias) {
		c.Elements("bias", a.Bias, a.biasLen(n), "one a column")
		c.Disjoint("D", a.D, "bias", a.Bias)
		if a.Grad {
			c.Disjoint("bias", a.Bias, "A", a.A)
			c.Disjoint("bias", a.Bias, "B", a.B)
		}
	}
	gelu(c, a, m, n, rows)
	c.Disjoint("D", a.D, "A", a.A)
	c.Disjoint("D", a.D, "B", a.B)
}

func gelu(c *check.Call, a GenericGemmArgs, m, n int, rows bool) {
	if !a.Gelu {
		if a.GeluIn != nil {
			c.Fail("gelu_in", "nil without gelu", "%v", a.GeluIn)
		}
		return
	}
	if !c.Compute("gelu_in", a.GeluIn) {
		return
	}
	if !rows {
		c.SameShape("gelu_in", a.GeluIn, "D", a.D)
	} else if a.GeluIn.NumElements() != m*n || a.GeluIn.Shape().Cols() != n {
		c.Fail("gelu_in", "shape ["+check.Itoa(m)+" "+check.Itoa(n)+"]", "%v", a.GeluIn)
	}
	c.Disjoint("D", a.D, "gelu_in", a.GeluIn)
	c.Disjoint("gelu_in", a.GeluIn, "A", a.A)
	c.Disjoint("gelu_in", a.GeluIn, "B", a.B)
	if a.Bias != nil {
		c.Disjoint("gelu_in", a.GeluIn, "bias", a.Bias)
	}
}

// biasLen is the length of Bias: the number of columns of D, or of B when Bias receives the
// gradient.
func (a GenericGemmArgs) biasLen(n int) int {
	if a.Grad {
		return a.B.Shape().Cols()
	}
	return n
}
