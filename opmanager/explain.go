package opmanager

import (
	"fmt"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Standing is an impl of an op as an Explanation sees it.
type Standing struct {
	ImplInfo
	Priority int `json:"priority"`
	// Available says whether the impl can run on this machine.
	Available bool `json:"available"`
	// Supports is what the impl declares about the calls that it serves, "" for
	// nothing.
	Supports string `json:"supports,omitempty"`
	// Determinism is what the impl declares about the bits of its results.
	Determinism opregistry.Determinism `json:"determinism"`
	// Measured is how fast the impl was measured to be, nil where that was not declared.
	Measured *opregistry.Measurement `json:"measured,omitempty"`
	// Reason says why the impl does not serve calls, "" of the one that does.
	Reason string `json:"reason,omitempty"`
}

// CallShape is what is known of a call in advance: dtype and shape of its lead
// operand, such as the input of a norm or A of a product.
type CallShape struct {
	DType tensor.DType `json:"dtype"`
	Shape tensor.Shape `json:"shape"` // nil for any
}

// Explanation says which impl serves an op and why the others do not.
type Explanation struct {
	Op         string     `json:"op"`
	Generation uint64     `json:"generation,omitempty"` // of the dispatch table that was asked
	Selected   string     `json:"selected,omitempty"`   // the impl id; "" when calls fail
	Order      []Standing `json:"order"`                // the candidates, best first
	Rejected   []Standing `json:"rejected"`             // the impls that are no candidates
	Tokens     string     `json:"tokens"`               // the order of the policy
	Source     string     `json:"source"`               // where that order came from
	// Rules are the rules for layers and phases that apply, "" for none.
	Rules string `json:"rules,omitempty"`
	// Call is what the answer is about where it is not about every call.
	Call *CallShape `json:"call,omitempty"`
	// Follows is the op of the same family whose order this one takes over, "" for
	// one that has an order of its own.
	Follows string `json:"follows,omitempty"`
}

// Explain answers for one op by name. The error for an unknown op wraps
// opregistry.ErrNotFound and carries the nearest name.
func (m *Manager) Explain(op string) (Explanation, error) { return m.explain(op, nil) }

// ExplainCall answers for calls of an op whose lead operand has this dtype and
// shape: an impl whose declared support rules them out is no candidate.
func (m *Manager) ExplainCall(op string, call CallShape) (Explanation, error) {
	return m.explain(op, &call)
}

func (m *Manager) explain(op string, call *CallShape) (Explanation, error) {
	t := m.table.Load()
	i, ok := t.registry.Index(op)
	if !ok {
		return Explanation{}, unknownOp(t.registry, op)
	}
	return t.explain(i, call), nil
}

// ExplainAll answers for every op in the order of the registry.
func (m *Manager) ExplainAll() []Explanation {
	t := m.table.Load()
	all := make([]Explanation, len(t.rows))
	for i := range t.rows {
		all[i] = t.explain(i, nil)
	}
	return all
}

// Explain ranks impls as Select does and says of each one why it does not serve
// calls. It knows of no families, since these belong to registered ops.
func (p *Policy) Explain(op string, impls []Candidate, resolve func(string) string) Explanation {
	order, rejected := p.Select(op, impls, resolve)
	e := p.newExplanation(op)
	for _, i := range order {
		c := impls[i]
		e.Order = append(e.Order, standing(c, p.behind(op, impls[order[0]], c, resolve)))
	}
	for _, r := range rejected {
		i := slices.IndexFunc(impls, func(c Candidate) bool { return c.ID == r.ID })
		e.Rejected = append(e.Rejected, standing(impls[i], r.Reason))
	}
	e.selectFirst()
	return e
}

func (t *table) explain(i int, call *CallShape) Explanation {
	r := &t.rows[i]
	op := t.registry.Ops()[i].Name()
	e := t.policy.newExplanation(op)
	e.Generation, e.Rules, e.Call = t.generation, t.line.rules, call
	entries, leading := t.registry.Impls(i), t.registry.Impls(i)
	if r.follows >= 0 {
		e.Follows = t.registry.Ops()[r.follows].Name()
		leading = t.registry.Impls(r.follows)
	}
	var first *candidate
	for _, c := range r.order {
		entry := entryOf(entries, c.info.ID)
		if call != nil {
			if err := entry.Support.Lead(call.DType, call.Shape); err != nil {
				e.Rejected = append(e.Rejected, t.standing(entry, err.Error()))
				continue
			}
		}
		reason := ""
		if first == nil {
			first = c
		} else {
			reason = t.policy.behind(t.registry.Ops()[r.leader(i)].Name(), asCandidate(entryOf(leading, first.info.ID)),
				asCandidate(entryOf(leading, c.info.ID)), t.registry.Vendor)
			if e.Follows != "" {
				reason += " of " + e.Follows
			}
		}
		if c.trial != nil {
			reason = joinSources(reason, "on trial after a quarantine")
		}
		e.Order = append(e.Order, t.standing(entry, reason))
	}
	for _, rej := range r.rejected {
		e.Rejected = append(e.Rejected, t.standing(entryOf(entries, rej.ID), rej.Reason))
	}
	e.selectFirst()
	return e
}

func (p *Policy) newExplanation(op string) Explanation {
	tokens, source := p.Order(op)
	return Explanation{Op: op, Order: []Standing{}, Rejected: []Standing{}, Tokens: tokenList(tokens), Source: source}
}

func (e *Explanation) selectFirst() {
	if len(e.Order) > 0 {
		e.Selected = e.Order[0].ID
	}
}

// behind returns why a candidate of an op comes after the first one, "" when it
// is the first.
func (p *Policy) behind(op string, first, c Candidate, resolve func(string) string) string {
	tokens, source := p.Order(op)
	token := func(c Candidate) int {
		return slices.IndexFunc(tokens, func(t Token) bool { return t.matches(c, resolve) })
	}
	switch {
	case c.ID == first.ID:
		return ""
	case token(c) != token(first):
		return fmt.Sprintf("later in the order %s%s", tokenList(tokens), inBrackets(source))
	case c.Priority != first.Priority:
		return fmt.Sprintf("lower priority: %d, where %s has %d", c.Priority, first.ID, first.Priority)
	case c.Measured.Rate != first.Measured.Rate:
		return fmt.Sprintf("slower as measured beside default.flagos: %s, where %s has %s", rate(c.Measured), first.ID, rate(first.Measured))
	default:
		return fmt.Sprintf("lower priority: the same %d as %s, whose id sorts after this one", c.Priority, first.ID)
	}
}

func inBrackets(source string) string {
	if source == "" {
		return ""
	}
	return " (" + source + ")"
}

func standing(c Candidate, reason string) Standing {
	s := Standing{
		ImplInfo: ImplInfo{ID: c.ID, Kind: c.Kind, Vendor: c.Vendor}, Priority: c.Priority, Available: c.Unusable == "",
		Determinism: c.Determinism, Reason: reason,
	}
	if c.Measured.Rate > 0 {
		s.Measured = &c.Measured
	}
	return s
}

// rate says how fast an impl was measured to be, and by what.
func rate(m opregistry.Measurement) string {
	if m.Rate == 0 {
		return "no measurement"
	}
	return fmt.Sprintf("%.2g (%s)", m.Rate, m.By)
}

func (t *table) standing(e opregistry.Entry, reason string) Standing {
	c := asCandidate(e)
	c.Unusable = t.available[e.Number]
	s := standing(c, reason)
	s.Source, s.Supports = e.Source, e.Support.String()
	return s
}

func asCandidate(e opregistry.Entry) Candidate {
	return Candidate{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Priority: e.Priority, Determinism: e.Determinism, Measured: e.Measured}
}

func entryOf(entries []opregistry.Entry, id string) opregistry.Entry {
	return entries[slices.IndexFunc(entries, func(e opregistry.Entry) bool { return e.ID == id })]
}
