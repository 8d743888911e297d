package opmanager

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/opregistry"
)

// table is what calls read: for each op its candidates. It is immutable.
type table struct {
	generation uint64
	registry   *opregistry.Snapshot
	policy     *Policy
	rows       []row
}

// row is one op of a table.
type row struct {
	head     *candidate // order[0], nil when there is none
	order    []*candidate
	rejected []Rejection
	cold     bool // calls need more than head: a family or in-place protection
	follows  int  // the op of the family whose order this one takes over, -1 for none
}

// leader returns the op whose order decides in row i.
func (r *row) leader(i int) int {
	if r.follows >= 0 {
		return r.follows
	}
	return i
}

// candidate is an impl that may serve calls of an op.
type candidate struct {
	info     ImplInfo
	run      any
	counters *counters
}

// buildTable makes the table of a policy from what is registered, what is
// available and what is in quarantine.
func (c *core) buildTable(generation uint64, snap *opregistry.Snapshot, p *Policy) *table {
	t := &table{generation: generation, registry: snap, policy: p, rows: make([]row, len(snap.Ops()))}
	for i, op := range snap.Ops() {
		t.rows[i] = c.buildRow(op.Name(), snap, snap.Impls(i), p)
		t.rows[i].cold = op.Family() != "" || p.ProtectInPlace
	}
	joinFamilies(t)
	for i := range t.rows {
		if order := t.rows[i].order; len(order) > 0 {
			t.rows[i].head = order[0]
		}
	}
	return t
}

func (c *core) buildRow(op string, snap *opregistry.Snapshot, entries []opregistry.Entry, p *Policy) row {
	impls := make([]Candidate, len(entries))
	for k, e := range entries {
		impls[k] = Candidate{
			ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Priority: e.Priority,
			Unusable: cmp.Or(c.probes.reason(e), c.quarantine.reason(op, e.ID)),
		}
	}
	order, rejected := p.Select(op, impls, snap.Vendor)
	r := row{rejected: rejected, follows: -1}
	for _, k := range order {
		e := entries[k]
		r.order = append(r.order, &candidate{
			info:     ImplInfo{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Source: e.Source},
			run:      e.Run,
			counters: c.countersOf(op, e),
		})
	}
	return r
}

// joinFamilies makes the ops of a family agree: an impl is a candidate only if
// it is one for every op of the family, and all follow the order of the forward
// op.
func joinFamilies(t *table) {
	members := map[string][]int{}
	for i, op := range t.registry.Ops() {
		if f := op.Family(); f != "" {
			members[f] = append(members[f], i)
		}
	}
	for _, rows := range members {
		slices.SortStableFunc(rows, func(a, b int) int {
			return cmp.Compare(rank(t.registry.Ops()[a]), rank(t.registry.Ops()[b]))
		})
		for _, i := range rows {
			for _, other := range rows {
				if i != other {
					t.rows[i].keep(&t.rows[other], t.registry.Ops()[other].Name())
				}
			}
		}
		lead := t.rows[rows[0]].order
		for _, i := range rows[1:] {
			t.rows[i].follows = rows[0]
			slices.SortStableFunc(t.rows[i].order, func(a, b *candidate) int {
				return cmp.Compare(position(lead, a.info.ID), position(lead, b.info.ID))
			})
		}
	}
}

func rank(op opregistry.Handle) int {
	if op.Forward() {
		return 0
	}
	return 1
}

func position(order []*candidate, id string) int {
	return slices.IndexFunc(order, func(c *candidate) bool { return c.info.ID == id })
}

// keep drops the candidates that another op of the family does not have.
func (r *row) keep(other *row, op string) {
	kept := make([]*candidate, 0, len(r.order))
	for _, c := range r.order {
		if position(other.order, c.info.ID) >= 0 {
			kept = append(kept, c)
			continue
		}
		reason := fmt.Sprintf("no impl %s of %s, which shares saved state with this op", c.info.ID, op)
		for _, rej := range other.rejected {
			if rej.ID == c.info.ID {
				reason = fmt.Sprintf("%s shares saved state with this op, and there: %s", op, rej.Reason)
			}
		}
		r.rejected = append(r.rejected, Rejection{ID: c.info.ID, Reason: reason})
	}
	r.order = kept
}
