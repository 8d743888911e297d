package opmanager

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
)

// Call calls an op by its name: what Bind and Bound.Call do together, for callers
// that learn the name while they run. A must be the argument struct of the op. The
// error for an unknown op wraps opregistry.ErrNotFound and carries the nearest
// name.
func Call[A any](m *Manager, op string, a A) error {
	if i, ok := m.table.Load().registry.Index(op); ok {
		if handles := m.named.Load(); handles != nil && i < len(*handles) {
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
		return nil, fmt.Errorf("opmanager: op %q: got arguments of type %T, want those of %T", op, *new(A), snap.Ops()[i])
	}
	b, err := Bind(m, typed)
	if err != nil {
		return nil, err
	}
	for {
		old := m.named.Load()
		next := make([]any, len(snap.Ops()))
		if old != nil {
			next = make([]any, max(len(*old), len(next)))
			copy(next, *old)
		}
		if first, ok := next[i].(*Bound[A]); ok {
			return first, nil
		}
		next[i] = b
		if m.named.CompareAndSwap(old, &next) {
			return b, nil
		}
	}
}

func unknownOp(snap *opregistry.Snapshot, op string) error {
	return fmt.Errorf("opmanager: op %q: %w by any loaded source%s", op, opregistry.ErrNotFound, nearestHint(op, knownNames(snap).Ops...))
}
