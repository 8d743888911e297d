package gemm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// GenericGemmArgs are the arguments of GenericGemm.
type GenericGemmArgs struct {
	A          *tensor.Tensor           `op:"0 A read compute [* _ _]"`
	B          *tensor.Tensor           `op:"1 B read =A [* _ _]"`
	TransA     bool                     `op:"2 trans_a"`
	TransB     bool                     `op:"3 trans_b"`
	D          *tensor.Tensor           `op:"4 D write|update:accumulate compute [* _ _]"`
	Bias       *tensor.Tensor           `op:"5 bias read|write:grad compute ?"`
	Gelu       bool                     `op:"6 gelu"`
	GeluIn     *tensor.Tensor           `op:"7 gelu_in write|read:grad compute ?:gelu"`
	Grad       bool                     `op:"8 grad"`
	Accumulate bool                     `op:"9 accumulate"`
	Alpha      opregistry.OptionalFloat `op:"10 alpha"`
	Beta       opregistry.OptionalFloat `op:"11 beta"`
}

// GenericGemm multiplies matrices in TransformerEngine's convention, which is cuBLAS's
// column-major convention applied to row-major tensors.
var GenericGemm = opregistry.NewOp("generic_gemm", opregistry.Schema[GenericGemmArgs]{
	Doc: "matrix product D = alpha·op(B)·op(A) + beta·D with bias and GELU epilogues",
	Formula: `
		generic_gemm multiplies matrices in TransformerEngine's convention, which is cuBLAS's
		column-major convention applied to row-major tensors:

		  D = alpha · op(B) · op(A) + beta · D      op(X) = Xᵀ if transposed, else X

		so y = x·Wᵀ is A = W, trans_a, B = x. With op(B) m×k and op(A) k×n, D is m×n. Leading axes
		of B beyond two are flattened; D has m·n elements and its last axis has length n. beta is 0
		unless accumulate is set.

		With grad false, bias is added to each row of alpha·op(B)·op(A) before beta·D is added; with
		gelu, that sum is written to gelu_in and replaced by its tanh-GELU. With grad true, bias
		receives the sum over the rows of B, and gelu multiplies the product by the derivative of
		the tanh-GELU at gelu_in.

		A and B have one compute dtype; D, bias and gelu_in may have another; sums are kept in f32
		or better and rounded once. With k = 0 the product is 0. Source: TransformerEngine 2.14,
		generic_gemm.

		Arguments:

		  D        [.., cols of op(A)]
		  bias     [cols of D], with grad [cols of B]
		  gelu_in  shape of D
		  alpha    1 when left out
		  beta     1 when left out; only with accumulate

		Example:

		  A=[[1 2] [3 4]] B=[[5 6]] → D=[[23 34]]
		  A=[[1 2] [3 4]] trans_a=1 B=[[5 6]] bias=[0.5 -0.5] → D=[[17.5 38.5]]
		  A=[[1 2]] B=[[3]] gelu=1 → D=[[2.996 6]] gelu_in=[[3 6]]
		  A=[[1 2] [3 4]] B=[[1 2]] D=[[10 20]] accumulate=1 alpha=2 beta=0.5 → D=[[19 30]]
	`,
	Tolerance: opregistry.Arithmetic(5e-5, 1e-5, "sums of up to 515 products, partial sums near 10: √515 roundings of 10·2⁻²⁴, four sigma"),
	Parts:     gemmParts,
	Check: func(c *opregistry.Check, a *GenericGemmArgs) {
		checkGemm(c, a, false)
		if !a.Accumulate && a.Beta.Or(0) != 0 {
			c.Fail("beta", "0 without accumulate", "%v", a.Beta.Or(0))
		}
	},
})

// Dims returns the sizes of the product: op(B) is m×k, op(A) is k×n, D is m×n.
func (a *GenericGemmArgs) Dims() (m, n, k int) {
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

// checkGemm checks the lengths of the axes of a product. With rows, D may have more rows than the
// product: the others belong to other products.
func checkGemm(c *opregistry.Check, a *GenericGemmArgs, rows bool) {
	m, n, k := a.Dims()
	if inner := a.A.Shape().Rows(); a.TransA {
		if a.A.Shape().Cols() != k {
			c.Fail("A", "inner size "+check.Itoa(k)+" of op(B)", "%v transposed", a.A)
		}
	} else if inner != k {
		c.Fail("A", "inner size "+check.Itoa(k)+" of op(B)", "%v", a.A)
	}
	if a.D.Shape().Cols() != n || !rows && a.D.NumElements() != m*n {
		c.Fail("D", "shape ["+check.Itoa(m)+" "+check.Itoa(n)+"]", "%v", a.D)
	}
	if a.Bias != nil {
		c.Elements("bias", a.Bias, a.biasLen(n), "one per column")
	}
	if !a.Gelu {
		return
	}
	if !rows {
		c.SameShape("gelu_in", a.GeluIn, "D", a.D)
	} else if a.GeluIn.NumElements() != m*n || a.GeluIn.Shape().Cols() != n {
		c.Fail("gelu_in", "shape ["+check.Itoa(m)+" "+check.Itoa(n)+"]", "%v", a.GeluIn)
	}
}

// biasLen is the length of Bias: the number of columns of D, or of B when Bias receives the
// gradient.
func (a *GenericGemmArgs) biasLen(n int) int {
	if a.Grad {
		return a.B.Shape().Cols()
	}
	return n
}
