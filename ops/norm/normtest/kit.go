// Package normtest has the conformance cases of package norm.
package normtest

import (
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package norm.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[norm.RMSNormFwdArgs]{Op: norm.RMSNormFwd, Cases: rmsnormFwdCases}.Suite(),
			opstest.Spec[norm.RMSNormBwdArgs]{Op: norm.RMSNormBwd, Cases: rmsnormBwdCases, Refresh: rmsnormRefresh}.Suite(),
			opstest.Spec[norm.ResidualAddArgs]{Op: norm.ResidualAdd, Cases: residualAddCases}.Suite(),
			opstest.Spec[norm.RMSNormBwdAddArgs]{Op: norm.RMSNormBwdAdd, Cases: rmsnormBwdAddCases}.Suite(),
			opstest.Spec[norm.LayerNormFwdArgs]{Op: norm.LayerNormFwd, Cases: layernormFwdCases}.Suite(),
			opstest.Spec[norm.LayerNormBwdArgs]{Op: norm.LayerNormBwd, Cases: layernormBwdCases, Refresh: layernormRefresh}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: norm.RMSNormBwd, Forward: norm.RMSNormFwd, Cases: rmsnormGradCases},
			{Backward: norm.ResidualAdd, Forward: norm.ResidualAdd, Cases: residualAddGradCases},
			{Backward: norm.RMSNormBwdAdd, Forward: norm.RMSNormFwd, Cases: rmsnormAddGradCases},
			{Backward: norm.LayerNormBwd, Forward: norm.LayerNormFwd, Cases: layernormGradCases},
		},
	}
}
