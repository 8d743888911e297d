package gemm

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		GenericGemm,
		TEGeneralGroupedGemm, TEGeneralGroupedGemmForGroupedTensor, TEGeneralGroupedGemmForDiscreteIn, TEGeneralGroupedGemmForDiscreteOut,
	}
}
