package opmanager

import (
	"fmt"
	"strings"
)

// Phase is the part of a training step that a call belongs to.
type Phase uint8

// The phases. The zero Phase stands for calls that belong to neither.
const (
	PhaseUnspecified Phase = iota
	PhaseForward
	PhaseBackward
)

var phaseNames = [...]string{PhaseForward: "forward", PhaseBackward: "backward"}

// String returns the name of the phase in lower case.
func (p Phase) String() string {
	if p == PhaseUnspecified || int(p) >= len(phaseNames) {
		return fmt.Sprintf("phase(%d)", uint8(p))
	}
	return phaseNames[p]
}

// MarshalText writes the name; the zero Phase is empty.
func (p Phase) MarshalText() ([]byte, error) {
	if p == PhaseUnspecified {
		return nil, nil
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (p *Phase) UnmarshalText(text []byte) (err error) {
	*p = PhaseUnspecified
	if len(text) > 0 {
		*p, err = ParsePhase(string(text))
	}
	return err
}

// ParsePhase reads forward or backward in any case.
func ParsePhase(name string) (Phase, error) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "forward":
		return PhaseForward, nil
	case "backward":
		return PhaseBackward, nil
	}
	return 0, fmt.Errorf("unknown phase %q, want forward or backward%s", name, nearestHint(name, "forward", "backward"))
}

// scope is where in the model a view's calls come from. The zero scope is
// nowhere: rules for layers or phases do not apply.
type scope struct {
	layer int // counts from 1 here; 0 is none
	phase Phase
}

// Layer returns the view for calls of one layer of the model, counted from 0: the
// Manager's policy with the rules for that layer. Views of one layer and phase are
// the same view. Close has no effect on it; it ends with the Manager it came from.
func (m *Manager) Layer(layer int) *Manager {
	at := m.scope
	at.layer = max(0, layer) + 1
	return m.root.at(at)
}

// Phase returns the view for calls of one phase of the training step: the
// Manager's policy with the rules for that phase. It combines with Layer. The
// backward op of a family follows the forward op whatever the rules for its phase
// say.
func (m *Manager) Phase(p Phase) *Manager {
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
	policy, rules := m.policy.at(at)
	if rules == "" {
		v.table.Store(m.table.Load())
	} else {
		v.table.Store(c.buildTable(m.table.Load().inputs, policy, m.line(rules)))
	}
	return v
}
