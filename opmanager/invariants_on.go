//go:build invariants

package opmanager

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// checkInvariants panics unless what calls read of the table, the ranks that the policy gives and
// what Explain answers are the same.
func (t *table) checkInvariants() {
	ops := t.registry.Ops()
	t.checkRows(ops, device.TypeCPU, t.rows)
	for _, d := range t.devices {
		t.checkRows(ops, d.on, d.rows)
	}
}

// checkRows checks the rows of calls with operands on devices of one type.
func (t *table) checkRows(ops []opregistry.Handle, on device.Type, rows []row) {
	if len(rows) != len(ops) {
		t.broken("all", "there are %d rows for %d ops", len(rows), len(ops))
	}
	for i, op := range ops {
		r, name := &rows[i], op.Name()
		if got, want := len(r.order)+len(r.rejected), len(t.registry.Impls(i)); got != want {
			t.broken(name, "the row has %d impls, the registry %d", got, want)
		}
		if len(r.order) == 0 {
			if r.head != nil || !r.special {
				t.broken(name, "the row has a head and no candidates")
			}
			continue
		}
		if r.head != r.order[0] {
			t.broken(name, "the head is not the first candidate, %s", r.order[0].info.ID)
		}
		t.checkOrder(i, r)
		e := t.explain(i, nil)
		selected := e.Selected
		for _, d := range e.Devices {
			if d.Device == on.String() {
				selected = d.Selected
			}
		}
		if selected != r.head.info.ID {
			t.broken(name, "calls on %v run %s, and explain answers %s", on, r.head.info.ID, selected)
		}
	}
}

// checkOrder panics unless each candidate of a row ranks after the one before it, apart from a
// canary.
func (t *table) checkOrder(i int, r *row) {
	name, leader := t.registry.Ops()[i].Name(), r.leader(i)
	entries := t.registry.Impls(leader)
	tokens, _ := t.policy.Order(t.registry.Ops()[leader].Name())
	rank := func(c oppolicy.Candidate) int {
		return slices.IndexFunc(tokens, func(token oppolicy.Token) bool { return token.Matches(c, t.registry.Vendor) })
	}
	var before oppolicy.Candidate
	for n, c := range slices.DeleteFunc(slices.Clone(r.order), func(c *candidate) bool { return c.canary != nil }) {
		now := asCandidate(entryOf(entries, c.info.ID))
		if rank(now) < 0 {
			t.broken(name, "the candidate %s matches no token of the policy", now.ID)
		}
		if n > 0 && cmp.Or(cmp.Compare(rank(before), rank(now)), oppolicy.CompareCandidates(before, now)) >= 0 {
			t.broken(name, "%s stands before %s, which ranks higher", before.ID, now.ID)
		}
		before = now
	}
}

func (t *table) broken(op, format string, args ...any) {
	panic(fmt.Sprintf("BUG: opmanager: table %d, op %s: %s", t.generation, op, fmt.Sprintf(format, args...)))
}

// callExec returns an Exec whose scratch memory checkScratch can tell from that of other calls.
func callExec(exec *opregistry.Exec) *opregistry.Exec { return exec.ForCall() }

// checkScratch panics unless an impl that has returned has released its scratch memory.
func checkScratch(exec *opregistry.Exec, op opregistry.Handle, c *candidate) {
	if n, floats := exec.Leak(); n > 0 {
		panic(fmt.Sprintf("BUG: opmanager: op %s: impl %s returned without releasing %d slices of scratch, %d float32s", op.Name(), c.info.ID, n, floats))
	}
}

// checkOwner panics when a backward op is about to run on an impl that has not written the saved
// state of the call.
func checkOwner[A any](op *opregistry.Op[A], c *candidate, a *A) {
	saved := op.Saved(a)
	if saved == nil || op.Forward() || saved.Owner() == "" || saved.Owner() == c.info.ID {
		return
	}
	panic(fmt.Sprintf("BUG: opmanager: op %s: impl %s got the saved state of %s", op.Name(), c.info.ID, saved.Owner()))
}
