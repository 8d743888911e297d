package plugin

import "github.com/primus-fl/primus/opregistry"

// CatalogueOf returns the ops that plugins may implement.
func CatalogueOf(ops []opregistry.Handle) catalogue { return catalogueOf(ops) }

// Fit returns the arguments that a library with a layout is called with.
func (c catalogue) Fit(op opregistry.Handle, layout uint64) ([]opregistry.Param, []string, error) {
	return c.fit(op, layout)
}

// HashOf returns the layout of arguments.
func HashOf(op string, params []opregistry.Param) uint64 {
	h := hashOf(op)
	for i, p := range params {
		h = h.with(i, argument{p.Macro(), p.Sort})
	}
	return uint64(h)
}
