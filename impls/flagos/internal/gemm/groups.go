package gemm

import (
	"sync"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

const (
	// groupRows bounds the rows of left of a part of a group: a part packs its panels of right for
	// its rows alone.
	groupRows = 1024

	// groupParts is the number of parts for each worker, about, so that none waits long for the last
	// one.
	groupParts = 16
)

// groups are products whose parts workers share, so that they wait for each other once.
type groups struct{ products []blocked }

var (
	groupsKernel = parallel.NewKernel((*groups).part)
	groupsPool   = sync.Pool{New: func() any { return new(groups) }}
)

// newGroups returns room for products. run takes it back.
func newGroups() *groups {
	g := groupsPool.Get().(*groups)
	g.products = g.products[:0]
	return g
}

// add takes a product that is prepared, and reports whether it did: it declines those with a
// bias, whose scratch ends with the call, those whose left is packed, which each part would do
// again, and those with so many rows that parts should share the panels of right.
func (g *groups) add(p *blocked) bool {
	if p.epilogue.bias != nil || p.inPlace(p.m) == 0 || !p.unpacked && p.m > 2*groupRows {
		return false
	}
	g.products = append(g.products, *p)
	return true
}

// run computes all products.
func (g *groups) run(e *opregistry.Exec) {
	share := max(groupParts*e.Pool().Workers()/max(len(g.products), 1), 1)
	parts := 0
	for i := range g.products {
		p := &g.products[i]
		p.own = !p.unpacked
		p.onePass()
		p.cut(share)
		parts += p.rowParts * p.colParts
	}
	if parts > 0 {
		groupsKernel.Run(e.Pool(), parts, *g)
	}
	clear(g.products)
	groupsPool.Put(g)
}

// cut cuts the product into about this many parts, fewer if they were too small.
func (g *blocked) cut(parts int) {
	mr := g.kernel.MR
	tiles := (g.m + mr - 1) / mr
	parts = min(parts, max(g.m*g.n*g.k/gemmGrain, 1))
	g.colParts = min(parts, g.now.colPanels)
	g.rowParts = min(max(parts/g.colParts, (g.m+groupRows-1)/groupRows), tiles)
	g.blockRows = (tiles + g.rowParts - 1) / g.rowParts * mr
}

func (g *groups) part(part int) {
	for i := range g.products {
		p := &g.products[i]
		if n := p.rowParts * p.colParts; part >= n {
			part -= n
			continue
		}
		p.part(part)
		return
	}
}
