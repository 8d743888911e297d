package flagos

import (
	"github.com/primus-fl/primus/opregistry"
	gemmops "github.com/primus-fl/primus/ops/gemm"
)

// groupedGemm implements gemm.TEGeneralGroupedGemm: it runs genericGemm for each group, in order,
// after it has checked that it serves all of them.
func groupedGemm(e *opregistry.Exec, a gemmops.TEGeneralGroupedGemmArgs) error {
	var v views
	var whole matrix
	if a.SingleOutput {
		whole = v.matrix("D", a.D[0])
	}
	for i := range a.A {
		v.product(group(&a, i), matrix{})
		if !a.SingleOutput {
			v.matrix("D", a.D[i])
		}
		if v.err != nil {
			return v.err
		}
	}
	first := 0
	for i := range a.A {
		g := group(&a, i)
		m, _, _ := g.Dims()
		d := whole.sub(first, m)
		if !a.SingleOutput {
			d = v.matrix("D", a.D[i])
		}
		p := v.product(g, d)
		p.run(e)
		first += m
	}
	return nil
}

// group returns the product of group i without its D.
func group(a *gemmops.TEGeneralGroupedGemmArgs, i int) gemmops.GenericGemmArgs {
	g := gemmops.GenericGemmArgs{A: a.A[i], TransA: a.TransA, B: a.B[i], TransB: a.TransB, Grad: a.Grad, Accumulate: a.Accumulate}
	if a.Bias != nil {
		g.Bias = a.Bias[i]
	}
	if a.PreGeluOut != nil {
		g.Gelu, g.GeluIn = true, a.PreGeluOut[i]
	}
	return g
}
