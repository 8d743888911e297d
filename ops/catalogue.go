package ops

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/ops/softmax"
)

// All returns the handles of every op of the catalogue, family by family.
func All() []opregistry.Handle {
	return slices.Concat(
		gemm.Ops(), norm.Ops(), activation.Ops(), softmax.Ops(), rope.Ops(), attention.Ops(),
		dropout.Ops(), moe.Ops(), embedding.Ops(), loss.Ops(), optim.Ops(), quant.Ops(), collective.Ops(),
	)
}
