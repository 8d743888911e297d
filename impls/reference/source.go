package reference

import (
	"cmp"
	"slices"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opregistry"
)

// ID is the id of the impls, except for those of collectives.
const ID = "reference.go"

// Priority ranks the impls after those of every other kind.
const Priority = 50

// Source returns an impl of every op of the catalogue that computes something.
func Source() opregistry.Source {
	impls := slices.Concat(computing(), collectives())
	for i := range impls {
		impls[i].ID = cmp.Or(impls[i].ID, ID)
		impls[i].Kind, impls[i].Priority = opregistry.KindReference, Priority
	}
	return opregistry.Source{Name: "reference", Version: buildinfo.Version(), Impls: impls}
}
