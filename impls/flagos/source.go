package flagos

import (
	"slices"

	"github.com/primus-fl/primus/impls/flagos/activation"
	"github.com/primus-fl/primus/impls/flagos/attention"
	"github.com/primus-fl/primus/impls/flagos/dropout"
	"github.com/primus-fl/primus/impls/flagos/embedding"
	"github.com/primus-fl/primus/impls/flagos/gemm"
	"github.com/primus-fl/primus/impls/flagos/loss"
	"github.com/primus-fl/primus/impls/flagos/moe"
	"github.com/primus-fl/primus/impls/flagos/norm"
	"github.com/primus-fl/primus/impls/flagos/optim"
	"github.com/primus-fl/primus/impls/flagos/quant"
	"github.com/primus-fl/primus/impls/flagos/rope"
	"github.com/primus-fl/primus/impls/flagos/softmax"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opregistry"
)

// ID is the id of each impl of the package.
const ID = "default.flagos"

// Priority ranks the impls before vendors and the reference among the candidates that match one
// token of a policy.
const Priority = 150

// Source returns the impls.
func Source() opregistry.Source {
	impls := slices.Concat(
		gemm.Impls(), attention.Impls(), moe.Impls(), activation.Impls(), softmax.Impls(), norm.Impls(), dropout.Impls(), rope.Impls(),
		optim.Impls(), embedding.Impls(), loss.Impls(), quant.Impls(),
	)
	for i := range impls {
		impls[i].ID, impls[i].Kind, impls[i].Priority = ID, opregistry.KindFlagos, Priority
	}
	return opregistry.Source{Name: "flagos", Version: buildinfo.Version(), Impls: impls}
}
