// Package opscases gathers the conformance cases of the catalogue, which lie beside the families of
// ops. A vendor's test is
//
//	func TestConformance(t *testing.T) {
//		opscases.All().RunAll(t, openblas.Source(), reference.Source())
//	}
//
// Only tests and programs that check impls import it: training needs no case.
package opscases

import (
	"github.com/primus-fl/primus/opstest"
)

// All returns the cases of every op of the catalogue.
func All() opstest.Kit {
	return opstest.Join(
		Gemm(), Norm(), Activation(), Softmax(), Rope(), Attention(),
		Dropout(), Moe(), Embedding(), Loss(), Optim(), Quant(), Collective(),
	)
}
