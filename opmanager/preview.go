package opmanager

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Change is an op that would be served by another impl.
type Change struct {
	Op   string `json:"op"`
	From string `json:"from"` // the impl id; "" when calls fail
	To   string `json:"to"`
	// Where are the calls that change, "" for all.
	Where string `json:"where,omitempty"`
	// Reason says why From would not serve calls any more, or by which order To
	// would where nothing does.
	Reason string `json:"reason,omitempty"`
	// Places are the calls that change, one by one.
	Places []Place `json:"-"`
}

// Place is where calls come from.
type Place struct {
	Layer int // below 0 for calls outside of layers
	Phase Phase
}

// Preview returns what SetPolicy would change, by op: calls outside of layers and
// phases, and those of every view that is in use; and the Warnings that there would
// be. It changes nothing, and counts what is in quarantine and what is not available
// as SetPolicy would.
func (m *Manager) Preview(policy Policy) (changes []Change, warnings []string) {
	c, scratch := m.core, m.core.aside()
	c.mu.Lock()
	now := map[scope]*table{m.root.scope: m.root.table.Load()}
	for at, v := range m.root.scopes {
		now[at] = v.table.Load()
	}
	c.mu.Unlock()

	type pair struct{ from, to *table }
	built, groups := map[string]*table{}, map[pair][]scope{}
	for at, from := range now {
		scoped, rules := policy.at(at)
		if built[rules] == nil {
			built[rules] = scratch.buildTable(now[m.root.scope].inputs, scoped, &line{rules: rules})
		}
		p := pair{from, built[rules]}
		groups[p] = append(groups[p], at)
	}
	type move struct{ op, from, to, reason string }
	where := map[move][]scope{}
	for p, scopes := range groups {
		for i, op := range p.from.registry.Ops() {
			from, to := p.from.explain(i, nil), p.to.explain(i, nil)
			if from.Selected != to.Selected {
				c := move{op.Name(), from.Selected, to.Selected, to.ReasonOf(from.Selected)}
				where[c] = append(where[c], scopes...)
			}
		}
	}
	changes = make([]Change, 0, len(where))
	for m, scopes := range where {
		c := Change{Op: m.op, From: m.from, To: m.to, Reason: m.reason}
		if len(scopes) < len(now) {
			c.Where = describeScopes(scopes)
		}
		for _, at := range scopes {
			c.Places = append(c.Places, Place{at.layer - 1, at.phase})
		}
		slices.SortFunc(c.Places, func(a, b Place) int { return cmp.Or(a.Layer-b.Layer, cmp.Compare(a.Phase, b.Phase)) })
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.Where, b.Where)) })
	registry := now[m.root.scope].registry
	return changes, policy.Warnings(knownNames(registry), registry.Vendor)
}

// ExplainIn answers for every op in a layer, none if it is below 0, and a phase, as
// Explain of the view of Layer and Phase does. The question leaves no view behind,
// so that there may be any number of them. call is nil for every call.
func (m *Manager) ExplainIn(layer int, phase Phase, call *CallShape) []Explanation {
	at := scope{layer: max(0, layer+1), phase: phase}
	c := m.core
	c.mu.Lock()
	policy, in := m.root.policy, m.root.table.Load().inputs
	c.mu.Unlock()
	scoped, rules := policy.at(at)
	t := c.aside().buildTable(in, scoped, &line{rules: rules})
	all := make([]Explanation, len(t.rows))
	for i := range t.rows {
		all[i] = t.explain(i, call)
	}
	return all
}

// aside returns a core that builds the tables that c would, and leaves the counters
// of c alone.
func (c *core) aside() *core {
	return &core{
		timing: c.timing, counters: map[statsKey]*counters{}, slots: map[string]int{},
		quarantine: quarantine{cases: c.quarantine.copyCases()},
	}
}

// ReasonOf returns why an impl does not serve calls, for none the order by which
// another does.
func (e *Explanation) ReasonOf(id string) string {
	if id == "" {
		return "order " + e.Tokens + " (" + e.Source + ")"
	}
	for _, s := range slices.Concat(e.Order, e.Rejected) {
		if s.ID == id {
			return s.Reason
		}
	}
	return ""
}

// describeScopes says in which layers and phases calls are: "layers 0-3 forward".
func describeScopes(scopes []scope) string {
	layers := map[Phase][]int{}
	for _, at := range scopes {
		layers[at.phase] = append(layers[at.phase], at.layer)
	}
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(layers)) {
		var ranges []LayerRange
		numbers := slices.Sorted(slices.Values(layers[phase]))
		outside := numbers[0] == 0
		if outside {
			numbers = numbers[1:]
		}
		for _, n := range numbers {
			if last := len(ranges) - 1; last >= 0 && ranges[last].Last == n-2 {
				ranges[last].Last++
			} else {
				ranges = append(ranges, LayerRange{First: n - 1, Last: n - 1})
			}
		}
		suffix := ""
		if phase != PhaseUnspecified {
			suffix = " " + phase.String()
		}
		if outside {
			parts = append(parts, "outside of layers"+suffix)
		}
		if len(ranges) > 0 {
			parts = append(parts, "layers "+layerList(ranges)+suffix)
		}
	}
	return strings.Join(parts, ", ")
}

// copyCases returns the cases as they are now.
func (q *quarantine) copyCases() map[statsKey]*quarantineCase {
	q.mu.Lock()
	defer q.mu.Unlock()
	cases := make(map[statsKey]*quarantineCase, len(q.cases))
	for key, c := range q.cases {
		copied := *c
		cases[key] = &copied
	}
	return cases
}
