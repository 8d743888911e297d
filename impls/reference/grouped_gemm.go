package reference

import (
	"github.com/primus-fl/primus/ops/gemm"
)

// teGeneralGroupedGemm is genericGemm for each group.
func teGeneralGroupedGemm(a gemm.TEGeneralGroupedGemmArgs) error {
	row := 0
	for i := range a.A {
		group, err := a.Group(i, row)
		if err != nil {
			return err
		}
		if err := genericGemm(group); err != nil {
			return err
		}
		m, _, _ := group.Dims()
		row += m
	}
	return nil
}

// groupedGemm computes, for each member,
//
//	D = alpha · op(B) · op(A) + beta · D + bias by row
//
// With a beta of 0, D is not read.
func groupedGemm(a gemm.GroupedGemmArgs) error {
	n := a.B.Len()
	alpha, beta := orAll(a.Alpha, n, 1), orAll(a.Beta, n, 0)
	var rowA, rowB, rowD int
	for i := range n {
		memberA, err := a.A.Member(i, rowA)
		if err != nil {
			return err
		}
		memberB, err := a.B.Member(i, rowB)
		if err != nil {
			return err
		}
		memberD, err := a.D.Member(i, rowD)
		if err != nil {
			return err
		}
		rowA, rowB, rowD = rowA+memberA.Shape()[0], rowB+memberB.Shape()[0], rowD+memberD.Shape()[0]
		g := gemm.GenericGemmArgs{A: memberA, TransA: a.TransA, B: memberB, TransB: a.TransB}
		rows, cols, inner := g.Dims()
		p := matmul(operand(g.B, g.TransB), operand(g.A, g.TransA), rows, cols, inner)
		old := make([]float64, len(p))
		if beta[i] != 0 {
			old = memberD.Float64s()
		}
		for k := range p {
			p[k] = alpha[i]*p[k] + beta[i]*old[k]
			if a.Bias != nil {
				p[k] += a.Bias.At(i, k%cols)
			}
		}
		if err := memberD.SetFloat64s(p); err != nil {
			return err
		}
	}
	return nil
}
