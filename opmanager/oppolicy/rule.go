package oppolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// Rule changes a policy for some layers of a model, for a phase of the training step, or both.
// A rule never permits what the policy forbids: it denies vendors in addition to those that the
// policy denies, and allows vendors only among those that the policy allows.
type Rule struct {
	// Layers are the layers to which the rule applies; nil means all calls, including those outside
	// of layers.
	Layers []LayerRange
	// Phase is the phase to which the rule applies; the zero Phase means all calls.
	Phase Phase
	// Prefer replaces the preferred kind if it is not zero.
	Prefer opregistry.Kind
	// Allow and Deny narrow the vendors; nil changes nothing.
	Allow, Deny []string
	// PerOp are rules for ops that take precedence over those of the policy.
	PerOp []OpRule
	// Source says where the rule came from.
	Source string
}

// LayerRange is a range of layers, counted from 0, that includes both ends.
type LayerRange struct{ First, Last int }

// String returns the range as policies spell it.
func (r LayerRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// FormatLayers returns ranges in the form that ParseLayers reads.
func FormatLayers(layers []LayerRange) string {
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.String()
	}
	return strings.Join(names, ",")
}

// LayerSpans splits the layers that rules name into ranges such that each rule applies either to
// every layer of a range or to none. The first range is layer -1, which stands for calls outside of
// layers. Without rules there are no ranges.
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

// ParseLayers reads layers and ranges of layers, separated by commas, such as 0-3,7. source says
// where the text came from.
func ParseLayers(value, source string) ([]LayerRange, error) {
	var layers []LayerRange
	for start, text := range parts(value, ',') {
		fault := func(problem string) error {
			return &Error{Source: source, Value: value, Offset: start + leadingSpace(text), Problem: problem}
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
			return nil, fault(fmt.Sprintf("%q is not a layer, want a number counted from 0 or a range such as 0-3", strings.TrimSpace(text)))
		case r.Last < r.First:
			return nil, fault(fmt.Sprintf("range %q ends before it begins, want %d-%d", strings.TrimSpace(text), r.Last, r.First))
		}
		layers = append(layers, r)
	}
	return layers, nil
}

// maxLayers bounds the numbers of layers.
const maxLayers = 1_000_000

func layerNumber(text string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err == nil && n >= maxLayers {
		err = strconv.ErrRange
	}
	return int(n), err
}

func (r *Rule) applies(layer int, phase Phase) bool {
	contains := func(l LayerRange) bool { return l.First <= layer && layer <= l.Last }
	return (r.Phase == PhaseUnspecified || r.Phase == phase) && (r.Layers == nil || slices.ContainsFunc(r.Layers, contains))
}

// where returns the source of a rule with the layers and the phase to which it applies.
func (r *Rule) where() string {
	var parts []string
	if r.Layers != nil {
		parts = append(parts, "layers "+FormatLayers(r.Layers))
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

// For returns the policy for calls of a layer and a phase, and the names of the rules that apply to
// them. Calls outside of layers have a negative layer. For returns p and "" if no rule applies.
func (p *Policy) For(layer int, phase Phase) (result *Policy, rules string) {
	result = p
	for i := range p.Rules {
		rule := &p.Rules[i]
		if !rule.applies(layer, phase) {
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

// narrow applies a rule to the policy.
func (p *Policy) narrow(r *Rule) {
	source := r.where()
	if r.Prefer != opregistry.KindUnspecified {
		p.Prefer, p.PreferTuned = r.Prefer, false
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
