package reference

import (
	"cmp"
	"slices"

	"github.com/primus-fl/primus/impls/reference/internal/activation"
	"github.com/primus-fl/primus/impls/reference/internal/attention"
	"github.com/primus-fl/primus/impls/reference/internal/collective"
	"github.com/primus-fl/primus/impls/reference/internal/dropout"
	"github.com/primus-fl/primus/impls/reference/internal/embedding"
	"github.com/primus-fl/primus/impls/reference/internal/gemm"
	"github.com/primus-fl/primus/impls/reference/internal/loss"
	"github.com/primus-fl/primus/impls/reference/internal/moe"
	"github.com/primus-fl/primus/impls/reference/internal/norm"
	"github.com/primus-fl/primus/impls/reference/internal/optim"
	"github.com/primus-fl/primus/impls/reference/internal/quant"
	"github.com/primus-fl/primus/impls/reference/internal/rope"
	"github.com/primus-fl/primus/impls/reference/internal/softmax"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opregistry"
)

// ID is the id of the impls, except for those of collectives.
const ID = "reference.go"

// Priority ranks the impls after those of every other kind.
const Priority = 50

// Source returns an impl of every op of the catalogue that computes something.
func Source() opregistry.Source {
	impls := slices.Concat(
		gemm.Impls(), norm.Impls(), activation.Impls(), softmax.Impls(), rope.Impls(), attention.Impls(),
		dropout.Impls(), moe.Impls(), embedding.Impls(), loss.Impls(), optim.Impls(), quant.Impls(), collective.Impls(),
	)
	for i := range impls {
		impls[i].ID = cmp.Or(impls[i].ID, ID)
		impls[i].Kind, impls[i].Priority = opregistry.KindReference, Priority
	}
	return opregistry.Source{Name: "reference", Version: buildinfo.Version(), Impls: impls}
}
