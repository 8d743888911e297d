package ops

import (
	"errors"

	"github.com/primus-fl/primus/opregistry"
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
		return operands{}.all(list{"A", a.A}, opregistry.AccessRead).all(list{"B", a.B}, opregistry.AccessRead).
			all(list{"D", a.D}, output).all(list{"bias", a.Bias}, bias).all(list{"pre_gelu_out", a.PreGeluOut}, gelu)
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
	c := check{op: "te_general_grouped_gemm"}
	c.tensors(list{"B", a.B}, len(a.A))
	if a.SingleOutput {
		c.tensors(list{"D", a.D}, 1)
	} else {
		c.tensors(list{"D", a.D}, len(a.A))
	}
	if a.Bias != nil {
		c.tensors(list{"bias", a.Bias}, len(a.A))
	}
	if a.PreGeluOut != nil {
		c.tensors(list{"pre_gelu_out", a.PreGeluOut}, len(a.A))
	}
	if a.SingleOutput && c.err == nil && c.compute("D[0]", a.D[0]) {
		c.rank("D[0]", a.D[0], 2)
	}
	if c.err != nil {
		return c.err
	}
	rows := 0
	for i := range a.A {
		g := a.group(i)
		c.gemm(g, a.SingleOutput)
		if c.err != nil {
			return inGroup(c.err, i, a.SingleOutput)
		}
		m, _, _ := g.Dims()
		rows += m
	}
	if a.SingleOutput && c.err == nil && a.D[0].Shape()[0] != rows {
		c.fail("D[0]", itoa(rows)+" rows", "%v", a.D[0])
	}
	d, bias, gelu := list{"D", a.D}, list{"bias", a.Bias}, list{"pre_gelu_out", a.PreGeluOut}
	reads := [...]list{{"A", a.A}, {"B", a.B}, bias}
	writes := [...]list{d, gelu}
	if a.Grad {
		reads[2], writes[1] = gelu, bias
	}
	c.listsApart(writes[:], reads[:])
	return c.err
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
	arg.Operand = list{name: arg.Operand}.at(i)
	return arg
}

// tensors requires a list of n tensors.
func (c *check) tensors(l list, n int) {
	if c.err == nil && len(l.ts) != n {
		c.fail(l.name, itoa(n)+" tensors", "%d", len(l.ts))
	}
	for i, t := range l.ts {
		if c.err == nil && t == nil {
			c.fail(l.at(i), "a tensor", "nil")
		}
	}
}
