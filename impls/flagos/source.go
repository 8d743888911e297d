package flagos

import (
	"slices"

	"github.com/primus-fl/primus/impls/flagos/internal/attention"
	"github.com/primus-fl/primus/impls/flagos/internal/gemm"
	"github.com/primus-fl/primus/impls/flagos/internal/moe"
	"github.com/primus-fl/primus/impls/flagos/internal/quant"
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
		gemm.Impls(), attention.Impls(), moe.Impls(), activationImpls(), softmaxImpls(), normImpls(), dropoutImpls(), ropeImpls(),
		optimImpls(), embeddingImpls(), lossImpls(), quant.Impls(),
	)
	for i := range impls {
		impls[i].ID, impls[i].Kind, impls[i].Priority = ID, opregistry.KindFlagos, Priority
	}
	return opregistry.Source{Name: "flagos", Version: buildinfo.Version(), Impls: impls}
}
