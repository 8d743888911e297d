package opmanager

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// UnservedError is a policy that was refused because it would take the last impl
// from ops that handles are bound to.
type UnservedError struct {
	Ops []UnservedOp // by name
}

// UnservedOp is an op that a policy would leave without an impl.
type UnservedOp struct {
	Op string `json:"op"`
	// Where are the calls that would fail, "" for all.
	Where string `json:"where,omitempty"`
	// Impl serves these calls now.
	Impl string `json:"impl_id"`
	// Rejected are the impls of the op with the reason why the policy does not
	// select them.
	Rejected []Rejection `json:"rejected"`
}

// maxUnserved bounds how many ops the text of an UnservedError names.
const maxUnserved = 4

// Error names the ops and for every impl of them why it would not serve calls.
func (e *UnservedError) Error() string {
	var parts []string
	for i, op := range e.Ops {
		if i == maxUnserved {
			parts = append(parts, fmt.Sprintf("and %d more ops", len(e.Ops)-i))
			break
		}
		parts = append(parts, op.String())
	}
	return "policy: refused, the policy before it stays in force: " + strings.Join(parts, "; ")
}

// String says what would happen to the op, and why.
func (o UnservedOp) String() string {
	where := ""
	if o.Where != "" {
		where = " in " + o.Where
	}
	reasons := make([]string, len(o.Rejected))
	for i, r := range o.Rejected {
		reasons[i] = fmt.Sprintf("impl %q: %s", r.ID, r.Reason)
	}
	return fmt.Sprintf("op %q is in use%s, served by %s, and no impl of it would be left (%s)", o.Op, where, o.Impl, strings.Join(reasons, "; "))
}

// unserved returns an *UnservedError when tables leave a bound op without a
// candidate that has one now.
func unserved(tables map[*Manager]*table) error {
	type loss struct {
		op   int
		impl string
		next *table
	}
	where := map[loss][]scope{}
	inUse := map[int]int{} // views by op
	for m, next := range tables {
		now := m.table.Load()
		for _, op := range m.bound.ops() {
			inUse[op]++
			if now != nil && op < len(now.rows) && now.rows[op].head != nil && next.rows[op].head == nil {
				l := loss{op, now.rows[op].head.info.ID, next}
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

// bindings counts the handles that are bound to each op of a view.
type bindings struct {
	mu      sync.Mutex
	handles map[int]int // by index of the op
}

func newBindings() *bindings { return &bindings{handles: map[int]int{}} }

func (b *bindings) add(op int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handles[op]++
}

// remove takes note of a handle that is gone.
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
