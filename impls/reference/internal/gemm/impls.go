// Package gemm has the oracles of the ops of the family gemm.
package gemm

import (
	"github.com/primus-fl/primus/impls/reference/internal/host"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
)

// Impls returns the impls, which package reference completes.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(gemm.GenericGemm, genericGemm),
		host.Impl(gemm.TEGeneralGroupedGemm, teGeneralGroupedGemm),
		host.Impl(gemm.TEGeneralGroupedGemmForGroupedTensor, groupedGemm),
		host.Impl(gemm.TEGeneralGroupedGemmForDiscreteIn, groupedGemm),
		host.Impl(gemm.TEGeneralGroupedGemmForDiscreteOut, groupedGemm),
	}
}
