package opmanager

import "github.com/primus-fl/primus/opmanager/oppolicy"

// scope is the part of the model that calls come from. The zero scope is outside of all layers and
// phases.
type scope struct {
	layer int // counted from 1; 0 is outside of layers
	phase oppolicy.Phase
}

// policy returns the policy for calls of the scope and the rules that apply to them.
func (s scope) policy(p *oppolicy.Policy) (policy *oppolicy.Policy, rules string) {
	return p.For(s.layer-1, s.phase)
}

// Layer returns the Manager for calls of one layer of the model, counted from 0. It applies the
// rules for that layer and otherwise shares everything with m. Layer returns the same Manager each
// time. Closing it has no effect.
func (m *Manager) Layer(layer int) *Manager {
	at := m.scope
	at.layer = max(0, layer) + 1
	return m.root.at(at)
}

// Phase returns the Manager for calls of one phase of the training step. It applies the rules for
// that phase and can be combined with Layer. The backward op of a family follows its forward op
// regardless of the rules for its phase.
func (m *Manager) Phase(p oppolicy.Phase) *Manager {
	at := m.scope
	at.phase = p
	return m.root.at(at)
}

func (m *Manager) at(at scope) *Manager {
	if at == m.scope {
		return m
	}
	c := m.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := m.scopes[at]; ok {
		return v
	}
	v := &Manager{core: c, root: m, scope: at, bound: newBindings()}
	m.scopes[at] = v
	policy, rules := at.policy(m.policy)
	if rules == "" {
		v.table.Store(m.table.Load())
	} else {
		v.table.Store(c.buildTable(m.table.Load().inputs, policy, m.history(rules)))
	}
	return v
}
