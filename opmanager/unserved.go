package opmanager

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// UnservedError is the error for a policy that would leave ops in use without an impl.
type UnservedError struct {
	Ops []UnservedOp // sorted by name
}

// UnservedOp is an op that a policy would leave without an impl.
type UnservedOp struct {
	Op string `json:"op"`
	// Call describes the operands of the calls that would fail, "" for all.
	Call string `json:"call,omitempty"`
	// Where describes the layers and phases of the calls that would fail, "" for all.
	Where string `json:"where,omitempty"`
	// Impl is the id of the impl that serves these calls now, "" where that is not known.
	Impl string `json:"impl_id,omitempty"`
	// Rejected are the impls of the op, each with the reason why it would not be a candidate.
	Rejected []oppolicy.Rejection `json:"rejected"`
}

// maxUnserved bounds the number of ops that the text of an UnservedError names.
const maxUnserved = 4

// Error returns the ops and the reason why each of their impls would not serve calls.
func (e *UnservedError) Error() string {
	var parts []string
	for i, op := range e.Ops {
		if i == maxUnserved {
			parts = append(parts, fmt.Sprintf("and %d more", len(e.Ops)-i))
			break
		}
		parts = append(parts, op.String())
	}
	return "policy: it leaves calls without an impl: " + strings.Join(parts, "; ")
}

// String returns what would happen to the op, and why.
func (o UnservedOp) String() string {
	where := ""
	switch {
	case strings.HasPrefix(o.Where, "outside"):
		where = " " + o.Where
	case o.Where != "":
		where = " in " + o.Where
	}
	reasons := make([]string, len(o.Rejected))
	for i, r := range o.Rejected {
		reasons[i] = fmt.Sprintf("impl %q: %s", r.ID, r.Reason)
	}
	if o.Call != "" {
		return fmt.Sprintf("op %q is called%s with %s, which no impl would serve (%s)", o.Op, where, o.Call, strings.Join(reasons, "; "))
	}
	return fmt.Sprintf("op %q is in use%s, served by %s, and would have no impl left (%s)", o.Op, where, o.Impl, strings.Join(reasons, "; "))
}

// currentTables returns the tables of views.
func currentTables(views []*Manager) map[*Manager]*table {
	tables := make(map[*Manager]*table, len(views))
	for _, v := range views {
		tables[v] = v.table.Load()
	}
	return tables
}

// unserved returns an *UnservedError if the tables next leave a bound op without a candidate that
// has one in the tables now.
func unserved(now, next map[*Manager]*table) error {
	type loss struct {
		op   int
		impl string
		next *table
	}
	where := map[loss][]scope{}
	inUse := map[int]int{} // the number of views, by op
	for m, after := range next {
		before := now[m]
		for _, op := range m.bound.ops() {
			inUse[op]++
			if before != nil && op < len(before.rows) && before.rows[op].head != nil && after.rows[op].head == nil {
				l := loss{op, before.rows[op].head.info.ID, after}
				where[l] = append(where[l], m.scope)
			}
		}
	}
	if len(where) == 0 {
		return nil
	}
	e := &UnservedError{}
	for l, scopes := range where {
		o := UnservedOp{Op: l.next.registry.Ops()[l.op].Name(), Impl: l.impl, Rejected: l.next.rows[l.op].rejected}
		if len(scopes) < inUse[l.op] {
			o.Where = describeScopes(scopes)
		}
		e.Ops = append(e.Ops, o)
	}
	slices.SortFunc(e.Ops, func(a, b UnservedOp) int {
		return strings.Compare(a.Op+" "+a.Where+" "+a.Impl, b.Op+" "+b.Where+" "+b.Impl)
	})
	return e
}

// bindings counts the handles that are bound to each op of a Manager.
type bindings struct {
	mu      sync.Mutex
	handles map[int]int // by the index of the op
}

func newBindings() *bindings { return &bindings{handles: map[int]int{}} }

func (b *bindings) add(op int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handles[op]++
}

// remove counts a handle that was collected.
func (b *bindings) remove(op int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handles[op]--; b.handles[op] == 0 {
		delete(b.handles, op)
	}
}

// ops returns the indexes of the ops that have handles.
func (b *bindings) ops() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.handles))
}

var _ error = (*UnservedError)(nil)
