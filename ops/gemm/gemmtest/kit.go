// Package gemmtest has the conformance cases of package gemm.
package gemmtest

import (
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/opstest"
)

// Kit returns the cases of the ops of package gemm.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[gemm.GenericGemmArgs]{Op: gemm.GenericGemm, Cases: gemmCases}.Suite(),
			opstest.Spec[gemm.TEGeneralGroupedGemmArgs]{Op: gemm.TEGeneralGroupedGemm, Cases: groupedGemmCases}.Suite(),
			opstest.Spec[gemm.GroupedGemmArgs]{Op: gemm.TEGeneralGroupedGemmForGroupedTensor, Cases: groupedTensorCases}.Suite(),
			opstest.Spec[gemm.GroupedGemmArgs]{Op: gemm.TEGeneralGroupedGemmForDiscreteIn, Cases: discreteInCases}.Suite(),
			opstest.Spec[gemm.GroupedGemmArgs]{Op: gemm.TEGeneralGroupedGemmForDiscreteOut, Cases: discreteOutCases}.Suite(),
		},
		Gradients: []opstest.Gradient{
			{Backward: gemm.GenericGemm, Forward: gemm.GenericGemm, Cases: gemmGradCases},
			{Backward: gemm.TEGeneralGroupedGemm, Forward: gemm.TEGeneralGroupedGemm, Cases: groupedGemmGradCases},
		},
	}
}
