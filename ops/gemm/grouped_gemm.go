package gemm

import (
	"errors"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// TEGeneralGroupedGemmArgs are the arguments of TEGeneralGroupedGemm. The lists have one tensor per
// group; TransformerEngine's m_splits repeats their shapes and is left out.
type TEGeneralGroupedGemmArgs struct {
	A, B           []*tensor.Tensor
	TransA, TransB bool
	D              []*tensor.Tensor // with SingleOutput one tensor: the rows of all groups, one after the other
	SingleOutput   bool
	Bias           []*tensor.Tensor // nil without bias
	PreGeluOut     []*tensor.Tensor // nil without GELU
	Grad           bool
	Accumulate     bool
}

// TEGeneralGroupedGemm is GenericGemm for each group:
//
//	D_i = op(B_i) · op(A_i)      (+ D_i with Accumulate)
//
// with the epilogues of GenericGemm: Bias is GenericGemm's Bias and PreGeluOut its GeluIn; Grad
// says whether both are read or written. A group without rows has an empty D; a group without an
// inner axis adds a product of 0 and has a bias gradient of 0. Dtypes, sums and aliasing are those
// of GenericGemm; the operands that a group writes are disjoint from the operands of all groups.
// Source: TransformerEngine 2.14.
var TEGeneralGroupedGemm = opregistry.NewOp("te_general_grouped_gemm", opregistry.Schema[TEGeneralGroupedGemmArgs]{
	Doc:      "matrix products of several groups with bias and GELU epilogues",
	Validate: validateGrouped,
	Operands: func(a TEGeneralGroupedGemmArgs) []opregistry.Operand {
		output, bias, gelu := opregistry.AccessWrite, opregistry.AccessRead, opregistry.AccessWrite
		if a.Accumulate {
			output = opregistry.AccessUpdate
		}
		if a.Grad {
			bias, gelu = opregistry.AccessWrite, opregistry.AccessRead
		}
		return check.Operands{}.All(check.List{Name: "A", Tensors: a.A}, opregistry.AccessRead).All(check.List{Name: "B", Tensors: a.B}, opregistry.AccessRead).
			All(check.List{Name: "D", Tensors: a.D}, output).All(check.List{Name: "bias", Tensors: a.Bias}, bias).All(check.List{Name: "pre_gelu_out", Tensors: a.PreGeluOut}, gelu)
	},
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

func validateGrouped(a TEGeneralGroupedGemmArgs) error {
	c := check.Call{Op: "te_general_grouped_gemm"}
	tensors(&c, check.List{Name: "B", Tensors: a.B}, len(a.A))
	if a.SingleOutput {
		tensors(&c, check.List{Name: "D", Tensors: a.D}, 1)
	} else {
		tensors(&c, check.List{Name: "D", Tensors: a.D}, len(a.A))
	}
	if a.Bias != nil {
		tensors(&c, check.List{Name: "bias", Tensors: a.Bias}, len(a.A))
	}
	if a.PreGeluOut != nil {
		tensors(&c, check.List{Name: "pre_gelu_out", Tensors: a.PreGeluOut}, len(a.A))
	}
	if a.SingleOutput && c.Err == nil && c.Compute("D[0]", a.D[0]) {
		c.Rank("D[0]", a.D[0], 2)
	}
	if c.Err != nil {
		return c.Err
	}
	rows := 0
	for i := range a.A {
		g := a.group(i)
		gemm(&c, g, a.SingleOutput)
		if c.Err != nil {
			return inGroup(c.Err, i, a.SingleOutput)
		}
		m, _, _ := g.Dims()
		rows += m
	}
	if a.SingleOutput && c.Err == nil && a.D[0].Shape()[0] != rows {
		c.Fail("D[0]", check.Itoa(rows)+" rows", "%v", a.D[0])
	}
	d, bias, gelu := check.List{Name: "D", Tensors: a.D}, check.List{Name: "bias", Tensors: a.Bias}, check.List{Name: "pre_gelu_out", Tensors: a.PreGeluOut}
	reads := [...]check.List{{Name: "A", Tensors: a.A}, {Name: "B", Tensors: a.B}, bias}
	writes := [...]check.List{d, gelu}
	if a.Grad {
		reads[2], writes[1] = gelu, bias
	}
	c.ListsApart(writes[:], reads[:])
	return c.Err
}

// inGroup names an operand of a product as that of a group.
func inGroup(err error, i int, single bool) error {
	arg, ok := errors.AsType[*opregistry.ArgError](err)
	switch {
	case !ok:
		return err
	case arg.Operand == "D" && single:
		i = 0
	case arg.Operand == "gelu_in":
		arg.Operand = "pre_gelu_out"
	}
	arg.Operand = check.List{Name: arg.Operand}.At(i)
	return arg
}

// tensors requires a list of n tensors.
func tensors(c *check.Call, l check.List, n int) {
	if c.Err == nil && len(l.Tensors) != n {
		c.Fail(l.Name, check.Itoa(n)+" tensors", "%d", len(l.Tensors))
	}
	for i, t := range l.Tensors {
		if c.Err == nil && t == nil {
			c.Fail(l.At(i), "a tensor", "nil")
		}
	}
}
