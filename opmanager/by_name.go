package opmanager

import (
	"fmt"
	"slices"

	"github.com/primus-fl/primus/internal/foreign"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// Call calls an op by its name, for programs that learn the name while they run. A must be the
// argument struct of the op. The error for an unknown op wraps opregistry.ErrNotFound and suggests
// the nearest name.
func Call[A any](m *Manager, op string, a A) error {
	if i, ok := m.table.Load().registry.Index(op); ok {
		if handles := m.byName.Load(); handles != nil && i < len(*handles) {
			if b, ok := (*handles)[i].(*Bound[A]); ok {
				return b.Call(a)
			}
		}
	}
	b, err := bindNamed[A](m, op)
	if err != nil {
		return err
	}
	return b.Call(a)
}

// bindNamed binds an op by its name and keeps the handle for later calls.
func bindNamed[A any](m *Manager, op string) (*Bound[A], error) {
	snap := m.table.Load().registry
	i, ok := snap.Index(op)
	if !ok {
		return nil, unknownOp(snap, op)
	}
	typed, ok := snap.Ops()[i].(*opregistry.Op[A])
	if !ok {
		return nil, fmt.Errorf("opmanager: op %q: given arguments of type %T, want those of %T", op, *new(A), snap.Ops()[i])
	}
	b, err := Bind(m, typed)
	if err != nil {
		return nil, err
	}
	for {
		old := m.byName.Load()
		next := make([]any, len(snap.Ops()))
		if old != nil {
			next = make([]any, max(len(*old), len(next)))
			copy(next, *old)
		}
		if first, ok := next[i].(*Bound[A]); ok {
			return first, nil
		}
		next[i] = b
		if m.byName.CompareAndSwap(old, &next) {
			return b, nil
		}
	}
}

// unknownOp returns the error for an op that no source registers.
func unknownOp(snap *opregistry.Snapshot, op string) error {
	if o, ok := foreign.Find(op); ok {
		return fmt.Errorf("opmanager: op %q: %w: TransformerEngine-FL uses it to %s; here: %s", op, opregistry.ErrNotFound, o.Purpose, o.Instead)
	}
	return fmt.Errorf("opmanager: op %q: %w by any loaded source%s", op, opregistry.ErrNotFound, suggest.Hint(op, knownNames(snap).Ops))
}

// Warnings describes each vendor, op and impl that the policy names and that no loaded source
// registers, with the nearest known name.
func (m *Manager) Warnings() []string {
	t := m.table.Load()
	warnings := t.policy.Warnings(knownNames(t.registry), t.registry.Vendor)
	for _, c := range m.Canaries() {
		if _, known := t.registry.Index(c.Op); known && c.State == CanaryTrying && c.Reason != "" { // names are checked above
			warnings = append(warnings, fmt.Sprintf("policy: the canary of op %q has no effect: %s: %s", c.Op, c.Source, c.Reason))
		}
	}
	return warnings
}

// knownNames returns the names that loaded sources register.
func knownNames(snap *opregistry.Snapshot) oppolicy.Names {
	known := oppolicy.Names{Missing: "which no loaded source registers"}
	for i, op := range snap.Ops() {
		known.Ops = append(known.Ops, op.Name())
		for _, e := range snap.Impls(i) {
			known.Impls = append(known.Impls, e.ID)
			if e.Vendor != "" {
				known.Vendors = append(known.Vendors, snap.Vendor(e.Vendor))
			}
		}
	}
	for _, names := range []*[]string{&known.Ops, &known.Vendors, &known.Impls} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return known
}
