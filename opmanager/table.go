package opmanager

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// inputs is the state that tables are built from, apart from the policy.
type inputs struct {
	generation  uint64
	registry    *opregistry.Snapshot
	unavailable map[uint64]string // why an impl cannot run, by its number
	taps        []Tap             // of every call
}

// table holds the candidates of each op by the type of device that the operands lie on. It is
// immutable, apart from atomic fields.
type table struct {
	inputs
	policy  *oppolicy.Policy
	history *history
	rows    []row // of calls with operands in host memory
	devices []deviceRows
	nowhere row // of calls whose operands lie where no impl serves them
}

// deviceRows are the rows of calls with operands on devices of one type.
type deviceRows struct {
	on   device.Type
	rows []row
}

// row returns the row of an op for calls with operands in a place.
func (t *table) row(op int, at device.Place) *row {
	if at == device.PlaceHost {
		return &t.rows[op]
	}
	return t.rowOn(op, at.Type())
}

// rowOn returns the row of an op for calls with operands on devices of a type.
func (t *table) rowOn(op int, on device.Type) *row {
	if on == device.TypeCPU {
		return &t.rows[op]
	}
	for i := range t.devices {
		if d := &t.devices[i]; d.on == on {
			return &d.rows[op]
		}
	}
	return &t.nowhere
}

// history is what successive tables have in common that are built from one policy, or from one
// policy and the same rules.
type history struct {
	rules string // a description of the rules, "" for none

	mu   sync.Mutex
	last map[string]ImplInfo // the impl that last served each op
}

// row is one op of a table.
type row struct {
	head     *candidate // order[0], nil if there is none
	special  bool       // calls are served by serveRest alone
	family   bool       // the op belongs to a family
	forward  bool       // it is the forward op of its family
	order    []*candidate
	rejected []oppolicy.Rejection
	follows  int // the op of the family that determines the order, -1 for none

	canary *rowCanary // nil if none of the candidates is one

	variants map[uint64]*row // by the signature of a call: the tuned choice for it; nil for none
	on       device.Type     // the type of device that the operands lie on
}

// leader returns the op that determines the order of row i.
func (r *row) leader(i int) int {
	if r.follows >= 0 {
		return r.follows
	}
	return i
}

// candidate is an impl that may serve calls of an op.
type candidate struct {
	run      any
	support  *opregistry.Support // nil if it serves every call
	dtypes   uint32              // the dtypes of the lead operand that it serves whatever else the call has, one bit each
	slot     int                 // index among the impls of the op
	number   uint64              // of the registration
	served   atomic.Bool         // set after the first call that it served
	tuned    bool                // it serves calls of some signatures
	trial    *trial              // set if its quarantine is half open
	canary   *canary             // set if it is one
	beside   *opregistry.Entry   // that its calls are compared with; nil for the reference
	checks   *checks             // nil unless its calls are verified
	history  *history
	info     ImplInfo
	counters *counters
}

// buildTable builds the table of a policy.
func (c *core) buildTable(in inputs, p *oppolicy.Policy, h *history) *table {
	t := &table{inputs: in, policy: p, history: h}
	t.rows = c.buildRows(t, device.TypeCPU)
	for _, on := range in.registry.DeviceTypes() {
		t.devices = append(t.devices, deviceRows{on, c.buildRows(t, on)})
	}
	t.nowhere.follows, t.nowhere.special = -1, true
	t.checkInvariants()
	return t
}

// buildRows builds the rows of calls with operands on devices of one type.
func (c *core) buildRows(t *table, on device.Type) []row {
	ops := t.registry.Ops()
	rows := make([]row, len(ops))
	for i := range ops {
		rows[i].on = on
		c.buildRow(&rows[i], i, t)
	}
	joinFamilies(ops, rows)
	c.placeCanaries(t, rows)
	for i, op := range ops {
		r := &rows[i]
		finish(r, op, t)
		if r.follows < 0 && op.Family() == "" {
			addVariants(r, op, t)
		}
	}
	return rows
}

// finish sets what calls need of a row whose order is known.
func finish(r *row, op opregistry.Handle, t *table) {
	if len(r.order) > 0 {
		r.head = r.order[0]
	}
	r.family, r.forward = op.Family() != "", op.Forward()
	r.special = r.head == nil || len(t.taps) > 0 || t.policy.ProtectInPlace || r.canary != nil && r.canary.active.Load() ||
		slices.ContainsFunc(r.order, func(c *candidate) bool { return c.trial != nil })
}

// addVariants adds a row for each signature of calls for which the tuning chooses another
// candidate. The ops of a family have none: their impl is chosen once for all calls.
func addVariants(r *row, op opregistry.Handle, t *table) {
	choice, ok := t.policy.Tuned(op.Name())
	if !ok {
		return
	}
	for _, call := range choice.Calls {
		i := position(r.order, call.Impl)
		if i <= 0 || r.order[i].canary != nil || r.order[0].canary != nil {
			continue // it is not a candidate, or the first one anyway, or for a canary to say
		}
		v := &row{on: r.on, rejected: r.rejected, follows: r.follows, canary: r.canary, order: slices.Concat(r.order[i:i+1], r.order[:i], r.order[i+1:])}
		v.order[0].tuned = true
		finish(v, op, t)
		if r.variants == nil {
			r.variants = map[uint64]*row{}
		}
		r.variants[call.Signature] = v
	}
}

func (c *core) buildRow(r *row, i int, t *table) {
	handle, entries := t.registry.Ops()[i], t.registry.Impls(i)
	op := handle.Name()
	impls := make([]oppolicy.Candidate, len(entries))
	trials := make([]*trial, len(entries))
	for k, e := range entries {
		reason, trial := c.quarantine.state(op, e.ID)
		trials[k] = trial
		impls[k] = oppolicy.Candidate{
			ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Priority: e.Priority,
			Determinism: e.Determinism, Measured: e.Measured,
			Unusable: cmp.Or(t.unavailable[e.Number], reason),
		}
	}
	policy := t.policy
	if set, _ := t.canarySet(i); set != nil {
		policy = policy.Admit(op, set)
	}
	order, rejected := policy.Select(op, impls, t.registry.Vendor)
	r.rejected, r.follows, r.order = rejected, -1, make([]*candidate, 0, len(order))
	made := make([]candidate, len(order))
	for n, k := range order {
		e := &entries[k]
		if err := e.Support.On(r.on); err != nil {
			r.rejected = append(r.rejected, oppolicy.Rejection{ID: e.ID, Reason: err.Error()})
			continue
		}
		all := c.countersOf(op, e)
		made[n].info, made[n].run, made[n].slot, made[n].trial = all.info, e.Run, all.slot, trials[k]
		made[n].number = e.Number
		made[n].history, made[n].counters = t.history, all
		if !handle.Collective() && t.policy.Verify.Covers(op, e.Kind, r.onHost()) {
			made[n].checks = c.checksOf(all, &t.policy.Verify)
		}
		if e.Support.PerCall() {
			made[n].support = &e.Support
			if mask, only := e.Support.DTypeMask(); only {
				made[n].dtypes = mask
			}
		}
		r.order = append(r.order, &made[n])
	}
}

// joinFamilies makes the ops of each family agree: an impl is a candidate only if it is a candidate
// for every op of the family, and all ops of the family use the order of the forward op.
func joinFamilies(ops []opregistry.Handle, all []row) {
	members := map[string][]int{}
	for i, op := range ops {
		if f := op.Family(); f != "" {
			members[f] = append(members[f], i)
		}
	}
	for _, rows := range members {
		slices.SortStableFunc(rows, func(a, b int) int {
			return cmp.Compare(rank(ops[a]), rank(ops[b]))
		})
		for _, i := range rows {
			for _, other := range rows {
				if i != other {
					all[i].keep(&all[other], ops[other].Name())
				}
			}
		}
		lead := all[rows[0]].order
		for _, i := range rows[1:] {
			all[i].follows = rows[0]
			slices.SortStableFunc(all[i].order, func(a, b *candidate) int {
				return cmp.Compare(position(lead, a.info.ID), position(lead, b.info.ID))
			})
		}
	}
}

// rank orders the ops of a family: forward ops come first.
func rank(op opregistry.Handle) int {
	if op.Forward() {
		return 0
	}
	return 1
}

// position returns the index of an impl in an order, -1 if it is not there.
func position(order []*candidate, id string) int {
	return slices.IndexFunc(order, func(c *candidate) bool { return c.info.ID == id })
}

// keep rejects the candidates that are not candidates of another op of the family.
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
				reason = fmt.Sprintf("%s shares saved state with this op and rejects the impl: %s", op, rej.Reason)
			}
		}
		r.rejected = append(r.rejected, oppolicy.Rejection{ID: c.info.ID, Reason: reason})
	}
	r.order = kept
}
