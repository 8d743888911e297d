package opmanager

import (
	"errors"
	"fmt"
	"maps"

	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// PolicyStack holds the layers of the policy of a Manager. Every change of a layer makes a new
// policy and the dispatch tables for it, and puts them in force together, or else is refused and
// changes nothing. It is safe for concurrent use: all changes of the policy, the registry and the
// quarantines of a Manager are made one after another, under one lock.
type PolicyStack struct {
	manager *Manager // a root

	// Guarded by core.mu.
	layers  PolicyLayers    // replaced, never changed
	since   uint64          // the generation that began with these layers
	earlier []PolicyLayers  // that were in force before, from the first on; replaced, never changed
	returns []PolicyPutBack // to earlier policies
}

// PolicyStack returns the stack of the policy of m. That of a layer or phase of the model is the
// stack of the Manager from which it was derived.
func (m *Manager) PolicyStack() *PolicyStack { return m.root.stack }

// PolicyState is what a PolicyStack holds at one time.
type PolicyState struct {
	Generation uint64 // of the dispatch table
	Since      uint64 // the generation that began with this policy
	Layers     PolicyLayers
	Policy     oppolicy.Policy // that the layers make
	Warnings   []string        // Manager.Warnings
}

// State returns the layers, the policy that they make and the generations that belong to them.
func (s *PolicyStack) State() PolicyState {
	c := s.manager.core
	c.mu.Lock()
	state, registry := s.stateLocked(), s.manager.table.Load().registry
	c.mu.Unlock()
	state.Layers = maps.Clone(state.Layers)
	state.Warnings = state.Policy.Warnings(knownNames(registry), registry.Vendor)
	return state
}

// stateLocked returns the state, without warnings and with the layers of the stack itself. The
// caller holds core.mu.
func (s *PolicyStack) stateLocked() PolicyState {
	return PolicyState{Generation: s.manager.core.generation, Since: s.since, Layers: s.layers, Policy: *s.manager.policy}
}

// Unchanged returns a *PolicyConflictError if the policy is another one than in the generation
// expected, or if there was no such generation yet.
func (s PolicyState) Unchanged(expected uint64) error {
	if expected < s.Since || expected > s.Generation {
		return &PolicyConflictError{Expected: expected, Since: s.Since, Current: s.Generation}
	}
	return nil
}

// Set replaces the layer of a kind and returns the generation of the dispatch table that begins
// with it; the zero PolicyLayer takes the layer away. The error is an *UnservedError if the new
// policy leaves an op without an impl that now has one and to which handles are bound, or a call
// that the program expects to make (Manager.Expect). If there is an error, nothing has changed.
func (s *PolicyStack) Set(kind LayerKind, layer PolicyLayer) (generation uint64, err error) {
	return s.change(func(PolicyState) error { return nil }, kind, layer)
}

// SetUnchanged does the same as Set if no layer was changed since the generation expected, which
// was that of a State. If one was, it changes nothing and returns a *PolicyConflictError.
func (s *PolicyStack) SetUnchanged(expected uint64, kind LayerKind, layer PolicyLayer) (generation uint64, err error) {
	return s.change(func(now PolicyState) error { return now.Unchanged(expected) }, kind, layer)
}

// change replaces a layer unless refuse returns an error for the present state.
func (s *PolicyStack) change(refuse func(now PolicyState) error, kind LayerKind, layer PolicyLayer) (uint64, error) {
	if err := kind.check(); err != nil {
		return 0, err
	}
	return s.put(func(now PolicyState) (PolicyLayers, error) {
		return now.Layers.with(kind, layer), refuse(now)
	})
}

// put puts the layers in force that next returns for the present state.
func (s *PolicyStack) put(next func(now PolicyState) (PolicyLayers, error)) (uint64, error) {
	m := s.manager
	for {
		var trials []trialCall
		expected := m.expected.Load()
		generation, err := m.core.apply(func(in inputs) (*Manager, error) {
			layers, err := next(s.stateLocked())
			if err != nil {
				return nil, err
			}
			policy, views := layers.Policy(), m.views()
			if err := policy.Contradiction(); err != nil {
				return nil, err
			}
			tables := m.core.buildTables(views, &policy, in, m.history)
			if err := unserved(currentTables(views), tables); err != nil {
				return nil, err
			}
			if trials, err = expected.check(tables); err != nil {
				return nil, err
			}
			if len(trials) > 0 {
				return nil, errTrials
			}
			s.remember(s.layers)
			s.layers, s.since, m.policy = layers, in.generation, &policy
			storeTables(tables)
			return m, nil
		})
		if len(trials) > 0 {
			expected.try(trials) // without the lock, since it may take long
			continue
		}
		if err != nil {
			return 0, err
		}
		m.core.emit(PolicyChanged{Generation: generation})
		return generation, nil
	}
}

// errTrials says that impls have to be tried before a policy can be judged.
var errTrials = errors.New("impls have to be tried")

// check returns an error if a layer cannot be of the kind.
func (k LayerKind) check() error {
	if k == LayerUnspecified || k > layerKinds {
		return fmt.Errorf("policy: given a layer of kind %v, want one of %v", k, LayerKinds())
	}
	return nil
}

// SetPolicy replaces the whole policy, whatever layers it has, and returns the generation of the
// new dispatch table. For a layer or phase of the model it replaces the policy of the Manager from
// which that was derived. It returns the error of PolicyStack.Set. No earlier policy is put back in
// place of it.
func (m *Manager) SetPolicy(policy oppolicy.Policy) (uint64, error) {
	s := m.PolicyStack()
	generation, err := s.put(func(PolicyState) (PolicyLayers, error) {
		return PolicyLayers{LayerDefault: {Policy: policy}}, nil
	})
	if err != nil {
		return 0, err
	}
	m.core.mu.Lock()
	defer m.core.mu.Unlock()
	if s.since == generation {
		s.earlier = nil
	}
	return generation, nil
}

// PolicyConflictError reports a change of a policy that is no longer the one that was read.
type PolicyConflictError struct {
	Expected uint64 // the generation that the change was meant for
	Since    uint64 // the generation that began with the policy in force
	Current  uint64
}

// Error names the expected generation and the present one.
func (e *PolicyConflictError) Error() string {
	if e.Expected > e.Current {
		return fmt.Sprintf("policy: given expected_generation %d, but the dispatch table is of generation %d; read the policy again", e.Expected, e.Current)
	}
	return fmt.Sprintf("policy: given expected_generation %d, but the policy was changed in generation %d; read it again and look at what is different", e.Expected, e.Since)
}

var _ error = (*PolicyConflictError)(nil)
