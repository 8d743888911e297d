package opmanager

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/opregistry"
)

// inputs are what tables are built from besides the policy.
type inputs struct {
	generation uint64
	registry   *opregistry.Snapshot
	available  map[uint64]string // why an impl is not, by its number
}

// table is what calls read: for each op its candidates. It is immutable.
type table struct {
	inputs
	policy *Policy
	line   *line
	rows   []row
}

// line is the succession of the tables of one policy: a Manager's, or one that
// rules have made of it.
type line struct {
	rules string // which rules, for events; "" for none

	mu   sync.Mutex
	last map[string]ImplInfo // the impl that served an op last
}

// row is one op of a table.
type row struct {
	// What a call through head needs stands together.
	special atomic.Bool // the next call needs more than to run head and count
	dtypes  uint32      // that head serves, as bits; 0 for any
	slot    int         // of head
	run     any         // of head

	head     *candidate // order[0], nil when there is none
	unusual  bool       // and so do all that follow
	cold     bool       // they need callCold
	order    []*candidate
	rejected []Rejection
	follows  int // the op of the family whose order this one takes over, -1 for none

	_ [24]byte // to 128, so that the place of a row is a shift away
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
	run      any
	support  *opregistry.Support // nil when it serves every call
	slot     int                 // dense number among the impls of the op
	served   atomic.Bool         // a call, and listeners know
	trial    *trial              // of an impl whose quarantine is half open
	line     *line
	info     ImplInfo
	counters *counters
}

// buildTable makes the table of a policy from what is registered, what is
// available and what is in quarantine.
func (c *core) buildTable(in inputs, p *Policy, l *line) *table {
	t := &table{inputs: in, policy: p, line: l, rows: make([]row, len(in.registry.Ops()))}
	for i, op := range in.registry.Ops() {
		c.buildRow(&t.rows[i], op.Name(), in, in.registry.Impls(i), p, l)
	}
	joinFamilies(t)
	for i, op := range in.registry.Ops() {
		r := &t.rows[i]
		r.cold = len(r.order) == 0 || op.Family() != "" || p.ProtectInPlace || p.Verify.covers(op.Name()) ||
			slices.ContainsFunc(r.order, func(c *candidate) bool { return c.trial != nil })
		if len(r.order) > 0 {
			r.head = r.order[0]
			r.run, r.slot = r.head.run, r.head.slot
		}
		r.unusual = r.cold || c.timing
		if !r.unusual && r.head.support != nil {
			var only bool
			r.dtypes, only = r.head.support.DTypeMask()
			r.unusual = !only
		}
		r.special.Store(true)
	}
	t.checkInvariants()
	return t
}

func (c *core) buildRow(r *row, op string, in inputs, entries []opregistry.Entry, p *Policy, l *line) {
	impls := make([]Candidate, len(entries))
	trials := make([]*trial, len(entries))
	for k, e := range entries {
		reason, half := c.quarantine.standing(op, e.ID)
		trials[k] = half
		impls[k] = Candidate{
			ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Priority: e.Priority,
			Determinism: e.Determinism, Measured: e.Measured,
			Unusable: cmp.Or(in.available[e.Number], reason),
		}
	}
	order, rejected := p.Select(op, impls, in.registry.Vendor)
	r.rejected, r.follows, r.order = rejected, -1, make([]*candidate, 0, len(order))
	made := make([]candidate, len(order))
	for n, k := range order {
		e := &entries[k]
		all := c.countersOf(op, e)
		made[n].info, made[n].run, made[n].slot, made[n].trial = all.info, e.Run, all.slot, trials[k]
		made[n].line, made[n].counters = l, all
		if e.Support.PerCall() {
			made[n].support = &e.Support
		}
		r.order = append(r.order, &made[n])
	}
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
		reason := missingImpl(c.info.ID, op)
		for _, rej := range other.rejected {
			if rej.ID == c.info.ID {
				reason = fmt.Sprintf("%s shares saved state with this op, and there: %s", op, rej.Reason)
			}
		}
		r.rejected = append(r.rejected, Rejection{ID: c.info.ID, Reason: reason})
	}
	r.order = kept
}
