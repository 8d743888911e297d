package opmanager

import (
	"cmp"
	"slices"

	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Difference is an op that the policies of two managers give to different impls. From and To are
// the same where only the canaries differ.
type Difference struct {
	Op     string `json:"op"`
	Layers string `json:"layers,omitempty"` // "" for calls outside of layers, and for calls of all layers
	Phase  string `json:"phase,omitempty"`  // "" for both
	From   string `json:"from"`             // "" if calls fail
	To     string `json:"to"`
	Reason string `json:"reason"` // why the second policy does not select From
}

// Where returns the layers and the phase of the difference with a space in front, "" for all calls.
func (c Difference) Where() string {
	text := ""
	if c.Layers != "" {
		text += " in layers " + c.Layers
	}
	if c.Phase != "" {
		text += " in phase " + c.Phase
	}
	return text
}

// Compare returns the differences from one manager to another for the ops with these names, for all
// ops if there are none. It runs no op. Differences of calls outside of layers come first; a layer
// or phase follows where it differs from that. The error says which name is not an op of from.
func Compare(from, to *Manager, names []string) ([]Difference, error) {
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

// WithoutImpl returns the differences from one manager to another that leave an op without an impl.
func WithoutImpl(from, to *Manager) []Difference {
	changes, _ := Compare(from, to, nil) // which only refuses names
	return slices.DeleteFunc(changes, func(c Difference) bool { return c.From == "" || c.To != "" })
}

// compareAt returns the differences for calls of one layer and phase.
func compareAt(from, to *Manager, names []string, layer int, phase oppolicy.Phase) []Difference {
	var changes []Difference
	before, after := from.ExplainIn(layer, phase, nil), to.ExplainIn(layer, phase, nil)
	for _, op := range names {
		a, b := explanationOf(before, op), explanationOf(after, op)
		switch tried := b.Canary.trial(); {
		case a.Selected != b.Selected:
			changes = append(changes, Difference{Op: op, From: a.Selected, To: b.Selected, Reason: b.ReasonOf(a.Selected)})
		case tried != a.Canary.trial():
			changes = append(changes, Difference{Op: op, From: a.Selected, To: b.Selected, Reason: cmp.Or(tried, "no canary")})
		}
	}
	return changes
}

// explanationOf returns the explanation of an op, or one without impls if there is none.
func explanationOf(all []Explanation, op string) Explanation {
	i := slices.IndexFunc(all, func(e Explanation) bool { return e.Op == op })
	if i < 0 {
		return Explanation{Op: op}
	}
	return all[i]
}

// mergePhases joins differences that are the same in both phases of the same layers.
func mergePhases(changes []Difference) []Difference {
	merged := []Difference{}
	for _, c := range changes {
		twin := slices.IndexFunc(merged, func(o Difference) bool {
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
