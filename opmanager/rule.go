package opmanager

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// Rule changes a policy for some layers of a model, for a phase of the training
// step, or both. Rules apply in order, each on top of the ones before. A rule
// never permits what the policy forbids: its vendors are denied besides the
// policy's, and allowed only among the policy's.
type Rule struct {
	// Layers are where the rule applies; nil means everywhere, also outside of
	// layers.
	Layers []LayerRange
	// Phase is when the rule applies; the zero Phase means always.
	Phase Phase
	// Prefer replaces the preferred kind, unless it is zero.
	Prefer opregistry.Kind
	// Allow and Deny narrow the vendors; nil changes nothing.
	Allow, Deny []string
	// PerOp are rules for ops that come before those of the policy.
	PerOp []OpRule
	// Source says where the rule came from.
	Source string
}

// LayerRange are layers counted from 0, both ends included.
type LayerRange struct{ First, Last int }

// String returns the range as policies spell it.
func (r LayerRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// layerList returns ranges as ParseLayers reads them.
func layerList(layers []LayerRange) string {
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.String()
	}
	return strings.Join(names, ",")
}

// LayerSpans cuts the layers that rules name into ranges within which every rule
// applies to all or none. The first range, of layer -1, stands for calls outside of
// layers. Without rules there is none.
func LayerSpans(rules []Rule) []LayerRange {
	if len(rules) == 0 {
		return nil
	}
	var cuts []int
	for _, r := range rules {
		for _, l := range r.Layers {
			cuts = append(cuts, l.First, l.Last+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	spans := []LayerRange{{First: -1, Last: -1}}
	for i := range max(0, len(cuts)-1) {
		spans = append(spans, LayerRange{First: cuts[i], Last: cuts[i+1] - 1})
	}
	return spans
}

// ParseLayers reads numbers and ranges with commas between them: 0-3,7.
func ParseLayers(value, source string) ([]LayerRange, error) {
	var layers []LayerRange
	for start, text := range fields(value, ',') {
		fault := func(problem string) error {
			return &PolicyError{Source: source, Value: value, Offset: start + skipBlanks(text), Problem: problem}
		}
		first, last, ranged := strings.Cut(strings.TrimSpace(text), "-")
		if !ranged {
			last = first
		}
		var r LayerRange
		var err1, err2 error
		r.First, err1 = layerNumber(first)
		r.Last, err2 = layerNumber(last)
		switch {
		case err1 != nil || err2 != nil:
			return nil, fault(fmt.Sprintf("%q is no layer, want a number counted from 0, or a range such as 0-3", strings.TrimSpace(text)))
		case r.Last < r.First:
			return nil, fault(fmt.Sprintf("range %q ends before it begins, want %d-%d", strings.TrimSpace(text), r.Last, r.First))
		}
		layers = append(layers, r)
	}
	return layers, nil
}

// mostLayers is above the number of layers of any model.
const mostLayers = 1_000_000

func layerNumber(text string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err == nil && n >= mostLayers {
		err = strconv.ErrRange
	}
	return int(n), err
}

func (r *Rule) applies(at scope) bool {
	inLayer := func(l LayerRange) bool { return l.First <= at.layer-1 && at.layer-1 <= l.Last }
	return (r.Phase == PhaseUnspecified || r.Phase == at.phase) && (r.Layers == nil || slices.ContainsFunc(r.Layers, inLayer))
}

// where describes the scope of a rule behind the source of a value.
func (r *Rule) where() string {
	var parts []string
	if r.Layers != nil {
		parts = append(parts, "layers "+layerList(r.Layers))
	}
	if r.Phase != PhaseUnspecified {
		parts = append(parts, "phase "+r.Phase.String())
	}
	source := cmp.Or(r.Source, sourceProgram)
	if len(parts) == 0 {
		return source
	}
	return source + " for " + strings.Join(parts, ", ")
}

// at returns the policy for a scope and the names of the rules that apply: p itself
// and "" when there is none.
func (p *Policy) at(at scope) (result *Policy, rules string) {
	result = p
	for i := range p.Rules {
		rule := &p.Rules[i]
		if !rule.applies(at) {
			continue
		}
		if result == p {
			derived := *p
			result = &derived
		}
		result.narrow(rule)
		rules = joinSources(rules, fmt.Sprintf("rule %d (%s)", i+1, rule.where()))
	}
	return result, rules
}

func (p *Policy) narrow(r *Rule) {
	source := r.where()
	if r.Prefer != opregistry.KindUnspecified {
		p.Prefer = r.Prefer
		p.SetSource(FieldPrefer, source)
	}
	if r.Deny != nil {
		p.Deny = slices.Concat(p.Deny, r.Deny)
		p.SetSource(FieldDeny, joinSources(p.Sources[FieldDeny], source))
	}
	if r.Allow != nil {
		p.scopedAllow = slices.Concat(p.scopedAllow, [][]string{r.Allow})
		p.SetSource(FieldAllow, joinSources(p.Sources[FieldAllow], source))
	}
	if r.PerOp != nil {
		rules := slices.Clone(r.PerOp)
		for i := range rules {
			rules[i].Source = source
		}
		p.scopedPerOp = slices.Concat([][]OpRule{rules}, p.scopedPerOp)
	}
}

func joinSources(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " and " + b
}
