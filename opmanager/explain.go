package opmanager

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
)

// Explanation says which impls serve an op and why the others do not.
type Explanation struct {
	Op         string      `json:"op"`
	Generation uint64      `json:"generation"`
	Order      []ImplInfo  `json:"order"` // best first; empty when calls fail
	Rejected   []Rejection `json:"rejected"`
	Tokens     string      `json:"tokens"` // the order of the policy
	Source     string      `json:"source"` // where that order came from
}

// Explain answers for one op by name.
func (m *Manager) Explain(op string) (Explanation, error) {
	t := m.table.Load()
	i, ok := t.registry.Index(op)
	if !ok {
		ops, _, _ := knownNames(t.registry)
		return Explanation{}, fmt.Errorf("opmanager: op %q: %w by any loaded source%s", op, opregistry.ErrNotFound, nearestHint(op, ops...))
	}
	return t.explain(i), nil
}

// ExplainAll answers for every op in the order of the registry.
func (m *Manager) ExplainAll() []Explanation {
	t := m.table.Load()
	all := make([]Explanation, len(t.rows))
	for i := range t.rows {
		all[i] = t.explain(i)
	}
	return all
}

func (t *table) explain(i int) Explanation {
	op := t.registry.Ops()[i].Name()
	tokens, source := t.policy.Order(op)
	e := Explanation{Op: op, Generation: t.generation, Rejected: t.rows[i].rejected, Tokens: tokenList(tokens), Source: source}
	for _, c := range t.rows[i].order {
		e.Order = append(e.Order, c.info)
	}
	return e
}
