package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
)

// groupedGemm implements gemm.TEGeneralGroupedGemm: it computes what genericGemm does for each
// group, after it has checked that it serves all of them. Workers share the parts of all groups
// of f32 that have no bias.
func groupedGemm(e *opregistry.Exec, a gemm.TEGeneralGroupedGemmArgs) error {
	var v host.Views
	var whole host.Matrix
	if a.SingleOutput {
		whole = v.Matrix("D", a.D[0])
	}
	for i := range a.A {
		productOf(&v, group(&a, i), host.Matrix{})
		if !a.SingleOutput {
			v.Matrix("D", a.D[i])
		}
		if v.Err != nil {
			return v.Err
		}
	}
	all := newGroups()
	first := 0
	for i := range a.A {
		g := group(&a, i)
		m, _, _ := g.Dims()
		d := whole.Sub(first, m)
		if !a.SingleOutput {
			d = v.Matrix("D", a.D[i])
		}
		p := productOf(&v, g, d)
		p.run(e, all)
		first += m
	}
	all.run(e)
	return nil
}

// group returns the product of group i without its D.
func group(a *gemm.TEGeneralGroupedGemmArgs, i int) gemm.GenericGemmArgs {
	g := gemm.GenericGemmArgs{A: a.A[i], TransA: a.TransA, B: a.B[i], TransB: a.TransB, Grad: a.Grad, Accumulate: a.Accumulate}
	if a.Bias != nil {
		g.Bias = a.Bias[i]
	}
	if a.PreGeluOut != nil {
		g.Gelu, g.GeluIn = true, a.PreGeluOut[i]
	}
	return g
}
