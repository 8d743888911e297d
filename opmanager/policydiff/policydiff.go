// Package policydiff compares which impls two policies select.
// Compare asks two managers which impl would serve each op and class of calls, and runs none.
package policydiff

import (
	"slices"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Change is an op that two policies give to different impls.
type Change struct {
	Op     string `json:"op"`
	Layers string `json:"layers,omitempty"` // "" for calls outside of layers, and for calls of all layers
	Phase  string `json:"phase,omitempty"`  // "" for both
	From   string `json:"from"`             // "" if calls fail
	To     string `json:"to"`
	Reason string `json:"reason"` // why the second policy does not select From
}

// Where returns the layers and the phase of the change with a space in front, "" for all calls.
func (c Change) Where() string {
	text := ""
	if c.Layers != "" {
		text += " in layers " + c.Layers
	}
	if c.Phase != "" {
		text += " in phase " + c.Phase
	}
	return text
}

// Compare returns the changes from one manager to another for the ops with these names, for all ops
// if there are none. Changes of calls outside of layers come first; a layer or phase follows where
// its change differs from that. The error says which name is not an op of from.
func Compare(from, to *opmanager.Manager, names []string) ([]Change, error) {
	if len(names) == 0 {
		for _, e := range from.ExplainAll() {
			names = append(names, e.Op)
		}
	}
	for _, name := range names {
		if _, err := from.Explain(name); err != nil {
			return nil, err
		}
	}
	changes := compareAt(from, to, names, -1, oppolicy.PhaseUnspecified)
	everywhere := map[[3]string]bool{}
	for _, c := range changes {
		everywhere[[3]string{c.Op, c.From, c.To}] = true
	}
	for _, span := range oppolicy.LayerSpans(slices.Concat(from.Policy().Rules, to.Policy().Rules)) {
		for _, phase := range []oppolicy.Phase{oppolicy.PhaseForward, oppolicy.PhaseBackward} {
			for _, c := range compareAt(from, to, names, span.First, phase) {
				if everywhere[[3]string{c.Op, c.From, c.To}] {
					continue
				}
				if c.Phase = phase.String(); span.First >= 0 {
					c.Layers = span.String()
				}
				changes = append(changes, c)
			}
		}
	}
	return mergePhases(changes), nil
}

// WithoutImpl returns the changes from one manager to another that leave an op without an impl.
func WithoutImpl(from, to *opmanager.Manager) []Change {
	changes, _ := Compare(from, to, nil) // which only refuses names
	return slices.DeleteFunc(changes, func(c Change) bool { return c.From == "" || c.To != "" })
}

// compareAt returns the changes for calls of one layer and phase.
func compareAt(from, to *opmanager.Manager, names []string, layer int, phase oppolicy.Phase) []Change {
	var changes []Change
	before, after := from.ExplainIn(layer, phase, nil), to.ExplainIn(layer, phase, nil)
	for _, op := range names {
		a, b := explanationOf(before, op), explanationOf(after, op)
		if a.Selected != b.Selected {
			changes = append(changes, Change{Op: op, From: a.Selected, To: b.Selected, Reason: b.ReasonOf(a.Selected)})
		}
	}
	return changes
}

// explanationOf returns the explanation of an op, or one without impls if there is none.
func explanationOf(all []opmanager.Explanation, op string) opmanager.Explanation {
	i := slices.IndexFunc(all, func(e opmanager.Explanation) bool { return e.Op == op })
	if i < 0 {
		return opmanager.Explanation{Op: op}
	}
	return all[i]
}

// mergePhases joins changes that are the same in both phases of the same layers.
func mergePhases(changes []Change) []Change {
	merged := []Change{}
	for _, c := range changes {
		twin := slices.IndexFunc(merged, func(o Change) bool {
			return o.Phase != "" && c.Phase != "" && o.Op == c.Op && o.Layers == c.Layers && o.From == c.From && o.To == c.To
		})
		if twin >= 0 && c.Layers != "" {
			merged[twin].Phase = ""
			continue
		}
		merged = append(merged, c)
	}
	return merged
}
