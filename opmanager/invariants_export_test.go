//go:build invariants

package opmanager

import "github.com/primus-fl/primus/opmanager/oppolicy"

// Faults are ways to break a row of a table with at least two candidates, and what the check of
// the table says then.
var Faults = map[string]struct {
	Break func(*row)
	Want  string
}{
	"order": {func(r *row) {
		r.order[0], r.order[1] = r.order[1], r.order[0]
		r.head = r.order[0]
	}, "ranks higher"},
	"head":      {func(r *row) { r.head = r.order[1] }, "the head is not the first candidate"},
	"lost impl": {func(r *row) { r.order = r.order[:1] }, "the registry"},
	"no candidates": {func(r *row) {
		*r = row{rejected: make([]oppolicy.Rejection, len(r.order)+len(r.rejected)), head: r.head}
	}, "a head and no candidates"},
}

// CheckBroken breaks the row of an op and checks the table.
func CheckBroken(m *Manager, op string, breakIt func(*row)) {
	t := m.table.Load()
	i, _ := t.registry.Index(op)
	t.checkInvariants()
	breakIt(&t.rows[i])
	t.checkInvariants()
}

// InvokeOn runs an op on its nth candidate.
func InvokeOn[A any](b *Bound[A], n int, a A) error {
	return b.attempt(b.table.Load().rows[b.index].order[n], &a)
}
