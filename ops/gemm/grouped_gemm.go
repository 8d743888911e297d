package gemm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// TEGeneralGroupedGemmArgs are the arguments of TEGeneralGroupedGemm. The lists have one tensor per
// group; TransformerEngine's m_splits repeats their shapes and is left out.
type TEGeneralGroupedGemmArgs struct {
	A            []*tensor.Tensor `op:"0 A read compute len=groups"`
	B            []*tensor.Tensor `op:"1 B read compute len=groups"`
	TransA       bool             `op:"2 trans_a"`
	TransB       bool             `op:"3 trans_b"`
	D            []*tensor.Tensor `op:"4 D write|update:accumulate compute"`
	SingleOutput bool             `op:"5 single_output"`
	Bias         []*tensor.Tensor `op:"6 bias read|write:grad compute ? len=groups"`
	PreGeluOut   []*tensor.Tensor `op:"7 pre_gelu_out write|read:grad compute ? len=groups"`
	Grad         bool             `op:"8 grad"`
	Accumulate   bool             `op:"9 accumulate"`
}

// TEGeneralGroupedGemm is GenericGemm for each group.
var TEGeneralGroupedGemm = opregistry.NewOp("te_general_grouped_gemm", opregistry.Schema[TEGeneralGroupedGemmArgs]{
	Doc: "matrix products of several groups with bias and GELU epilogues",
	Formula: `
		te_general_grouped_gemm is generic_gemm for each group:

		  D_i = op(B_i) · op(A_i)      (+ D_i with accumulate)

		with the epilogues of generic_gemm: bias is generic_gemm's bias and pre_gelu_out its gelu_in;
		grad says whether both are read or written. A group without rows has an empty D; a group
		without an inner axis adds a product of 0 and has a bias gradient of 0. Dtypes and sums are
		those of generic_gemm. Source: TransformerEngine 2.14.

		Arguments:

		  D             with single_output one tensor: the rows of all groups, one after the other
		  bias          nil without bias
		  pre_gelu_out  nil without GELU

		Example:

		  A[0]=[[1 2]] A[1]=[[3 4]] B[0]=[[5]] B[1]=[[1] [2]] → D[0]=[[5 10]] D[1]=[[3 4] [6 8]]
	`,
	Tolerance: opregistry.Arithmetic(2e-5, 1e-5, "as generic_gemm, sums of up to 70 products"),
	Check:     checkGrouped,
})

// Group returns the product of group i. With SingleOutput, firstRow is the number of rows of the
// groups before i.
func (a TEGeneralGroupedGemmArgs) Group(i, firstRow int) (GenericGemmArgs, error) {
	g := a.group(i)
	if !a.SingleOutput {
		return g, nil
	}
	m, _, _ := g.Dims()
	var err error
	g.D, err = a.D[0].Slice(0, firstRow, firstRow+m)
	return g, err
}

// group is Group with the whole of a single D.
func (a *TEGeneralGroupedGemmArgs) group(i int) GenericGemmArgs {
	g := GenericGemmArgs{A: a.A[i], TransA: a.TransA, B: a.B[i], TransB: a.TransB, Grad: a.Grad, Accumulate: a.Accumulate}
	if a.SingleOutput {
		g.D = a.D[0]
	} else {
		g.D = a.D[i]
	}
	if a.Bias != nil {
		g.Bias = a.Bias[i]
	}
	if a.PreGeluOut != nil {
		g.Gelu, g.GeluIn = true, a.PreGeluOut[i]
	}
	return g
}

func checkGrouped(c *opregistry.Check, a *TEGeneralGroupedGemmArgs) {
	outputs := len(a.A)
	if a.SingleOutput {
		outputs = 1
	}
	if len(a.D) != outputs {
		c.Fail("D", check.Itoa(outputs)+" tensors", "%d", len(a.D))
	} else if a.SingleOutput {
		c.Rank("D[0]", a.D[0], 2)
	}
	rows := 0
	for i := range a.A {
		if !c.OK() {
			return
		}
		g := a.group(i)
		if c.MinRank("A", g.A, 2) && c.MinRank("B", g.B, 2) && c.MinRank("D", g.D, 2) && c.SameDType("B", g.B, "A", g.A) {
			checkGemm(c, &g, a.SingleOutput)
		}
		c.Rename(func(name string) string { return inGroup(name, i, a.SingleOutput) })
		if c.OK() {
			m, _, _ := g.Dims()
			rows += m
		}
	}
	if c.OK() && a.SingleOutput && a.D[0].Shape()[0] != rows {
		c.Fail("D[0]", check.Itoa(rows)+" rows", "%v", a.D[0])
	}
}

// inGroup names an operand of a product as that of a group.
func inGroup(name string, i int, single bool) string {
	switch {
	case name == "D" && single:
		i = 0
	case name == "gelu_in":
		name = "pre_gelu_out"
	}
	return name + "[" + check.Itoa(i) + "]"
}
