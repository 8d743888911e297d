package flagos

import (
	"slices"

	"github.com/primus-fl/primus/impls/flagos/internal/activation"
	"github.com/primus-fl/primus/impls/flagos/internal/attention"
	"github.com/primus-fl/primus/impls/flagos/internal/dropout"
	"github.com/primus-fl/primus/impls/flagos/internal/embedding"
	"github.com/primus-fl/primus/impls/flagos/internal/gemm"
	"github.com/primus-fl/primus/impls/flagos/internal/loss"
	"github.com/primus-fl/primus/impls/flagos/internal/moe"
	"github.com/primus-fl/primus/impls/flagos/internal/norm"
	"github.com/primus-fl/primus/impls/flagos/internal/optim"
	"github.com/primus-fl/primus/impls/flagos/internal/quant"
	"github.com/primus-fl/primus/impls/flagos/internal/rope"
	"github.com/primus-fl/primus/impls/flagos/internal/softmax"
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
