package opmanager

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Change is an op that would be served by another impl under another policy.
type Change struct {
	Op   string `json:"op"`
	From string `json:"from"` // the impl id, "" if calls fail
	To   string `json:"to"`
	// Device is the type of device that the operands lie on, "" for the host.
	Device string `json:"device,omitempty"`
	// Where describes the calls that change, "" for all.
	Where string `json:"where,omitempty"`
	// Reason is the reason why From would no longer serve calls, or the order by which To would if
	// calls fail now.
	Reason string `json:"reason,omitempty"`
	// Places are the layers and phases whose calls change.
	Places []Place `json:"-"`
}

// ChangedOps returns the number of ops in changes, which may have several of one op.
func ChangedOps(changes []Change) int {
	ops := map[string]bool{}
	for _, c := range changes {
		ops[c.Op] = true
	}
	return len(ops)
}

// Place is the part of the model that calls come from.
type Place struct {
	Layer int // negative for calls outside of layers
	Phase oppolicy.Phase
}

// DryRun is what a change of a layer would do.
type DryRun struct {
	Generation uint64          // of the dispatch table with which the policy was compared
	Policy     oppolicy.Policy // that would be in force
	Changes    []Change        // sorted by op
	Warnings   []string        // Manager.Warnings under the policy
	Refused    error           // that PolicyStack.Set would return, nil if it would make the change
}

// DryRun returns what Set would do, and changes nothing. It considers calls outside of layers and
// phases of the model and those of every layer and phase in use, and takes quarantines and
// unavailable impls into account as Set does.
func (s *PolicyStack) DryRun(kind LayerKind, layer PolicyLayer) DryRun {
	if err := kind.check(); err != nil {
		return DryRun{Refused: err}
	}
	m, scratch := s.manager, s.manager.core.scratch()
	m.core.mu.Lock()
	generation, layers := m.core.generation, s.layers
	views := m.views()
	now := currentTables(views)
	m.core.mu.Unlock()

	// The rest is done without the lock, since it may take long.
	d := DryRun{Generation: generation, Policy: layers.with(kind, layer).Policy()}
	in := now[m].inputs
	next := scratch.buildTables(views, &d.Policy, in, func(rules string) *history { return &history{rules: rules} })
	d.Changes, d.Refused = changes(now, next), unserved(now, next)
	if d.Refused == nil {
		d.Refused = m.expected.Load().settled(next)
	}
	d.Warnings = d.Policy.Warnings(knownNames(in.registry), in.registry.Vendor)
	return d
}

// changes returns the changes from the tables of some views to others, sorted by op.
func changes(now, next map[*Manager]*table) []Change {
	type pair struct{ from, to *table }
	groups := map[pair][]scope{}
	for m, from := range now {
		p := pair{from, next[m]}
		groups[p] = append(groups[p], m.scope)
	}
	type move struct{ op, device, from, to, reason string }
	where := map[move][]scope{}
	for p, scopes := range groups {
		for i, op := range p.from.registry.Ops() {
			from, to := p.from.explain(i, nil), p.to.explain(i, nil)
			if from.Selected != to.Selected {
				c := move{op.Name(), "", from.Selected, to.Selected, to.ReasonOf(from.Selected)}
				where[c] = append(where[c], scopes...)
			}
			for k, d := range from.Devices {
				if next := to.Devices[k]; d.Selected != next.Selected {
					c := move{op.Name(), d.Device, d.Selected, next.Selected, next.String()}
					where[c] = append(where[c], scopes...)
				}
			}
		}
	}
	all := make([]Change, 0, len(where))
	for m, scopes := range where {
		c := Change{Op: m.op, Device: m.device, From: m.from, To: m.to, Reason: m.reason}
		if len(scopes) < len(now) {
			c.Where = describeScopes(scopes)
		}
		for _, at := range scopes {
			c.Places = append(c.Places, Place{at.layer - 1, at.phase})
		}
		slices.SortFunc(c.Places, func(a, b Place) int { return cmp.Or(a.Layer-b.Layer, cmp.Compare(a.Phase, b.Phase)) })
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.Device, b.Device), strings.Compare(a.Where, b.Where))
	})
	return all
}

// ExplainIn explains every op for calls of a layer and a phase. A negative layer means calls
// outside of layers. Unlike Layer and Phase it keeps no Manager for them. call limits the
// explanations to some calls; nil means all.
func (m *Manager) ExplainIn(layer int, phase oppolicy.Phase, call *CallShape) []Explanation {
	at := scope{layer: max(0, layer+1), phase: phase}
	c := m.core
	c.mu.Lock()
	policy, in := m.root.policy, m.root.table.Load().inputs
	c.mu.Unlock()
	scoped, rules := at.policy(policy)
	scratch := c.scratch()
	t := scratch.buildTable(in, scoped, &history{rules: rules})
	all := make([]Explanation, len(t.rows))
	for i := range t.rows {
		all[i] = t.explain(i, call)
		all[i].Canary = scratch.canary(t, i)
	}
	return all
}

// scratch returns a core that builds the same tables as c without changing the counters of c.
func (c *core) scratch() *core {
	c.canariesMu.Lock()
	defer c.canariesMu.Unlock()
	return &core{
		canaries: maps.Clone(c.canaries), counters: map[statsKey]*counters{}, slots: map[string]int{},
		quarantine: quarantine{cases: c.quarantine.copyCases()},
	}
}

// ReasonOf returns the reason why an impl does not serve calls. For "" it returns the order.
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

// describeScopes describes layers and phases, such as "layers 0-3 forward".
func describeScopes(scopes []scope) string {
	layers := map[oppolicy.Phase][]int{}
	for _, at := range scopes {
		layers[at.phase] = append(layers[at.phase], at.layer)
	}
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(layers)) {
		var ranges []oppolicy.LayerRange
		numbers := slices.Sorted(slices.Values(layers[phase]))
		outside := numbers[0] == 0
		if outside {
			numbers = numbers[1:]
		}
		for _, n := range numbers {
			if last := len(ranges) - 1; last >= 0 && ranges[last].Last == n-2 {
				ranges[last].Last++
			} else {
				ranges = append(ranges, oppolicy.LayerRange{First: n - 1, Last: n - 1})
			}
		}
		suffix := ""
		if phase != oppolicy.PhaseUnspecified {
			suffix = " " + phase.String()
		}
		if outside {
			parts = append(parts, "outside of layers"+suffix)
		}
		if len(ranges) > 0 {
			parts = append(parts, "layers "+oppolicy.FormatLayers(ranges)+suffix)
		}
	}
	return strings.Join(parts, ", ")
}
