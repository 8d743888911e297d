package reference

import (
	"cmp"
	"slices"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opregistry"
)

// id is the id of the impls, except for those of collectives.
const id = "reference.go"

// priority ranks the impls after those of every other kind.
const priority = 50

// Source returns an impl of every op of the catalogue that computes something.
func Source() opregistry.Source {
	impls := slices.Concat(computing(), collectives())
	for i := range impls {
		impls[i].ID = cmp.Or(impls[i].ID, id)
		impls[i].Kind, impls[i].Priority = opregistry.KindReference, priority
	}
	return opregistry.Source{Name: "reference", Version: buildinfo.Version(), Impls: impls}
}
