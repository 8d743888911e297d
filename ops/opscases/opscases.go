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
	"github.com/primus-fl/primus/ops/activation/activationtest"
	"github.com/primus-fl/primus/ops/attention/attentiontest"
	"github.com/primus-fl/primus/ops/collective/collectivetest"
	"github.com/primus-fl/primus/ops/dropout/dropouttest"
	"github.com/primus-fl/primus/ops/embedding/embeddingtest"
	"github.com/primus-fl/primus/ops/gemm/gemmtest"
	"github.com/primus-fl/primus/ops/loss/losstest"
	"github.com/primus-fl/primus/ops/moe/moetest"
	"github.com/primus-fl/primus/ops/norm/normtest"
	"github.com/primus-fl/primus/ops/optim/optimtest"
	"github.com/primus-fl/primus/ops/quant/quanttest"
	"github.com/primus-fl/primus/ops/rope/ropetest"
	"github.com/primus-fl/primus/ops/softmax/softmaxtest"
	"github.com/primus-fl/primus/opstest"
)

// All returns the cases of every op of the catalogue.
func All() opstest.Kit {
	return opstest.Join(
		gemmtest.Kit(), normtest.Kit(), activationtest.Kit(), softmaxtest.Kit(), ropetest.Kit(), attentiontest.Kit(),
		dropouttest.Kit(), moetest.Kit(), embeddingtest.Kit(), losstest.Kit(), optimtest.Kit(), quanttest.Kit(), collectivetest.Kit(),
	)
}
