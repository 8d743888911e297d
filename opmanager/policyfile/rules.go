package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// rules reads a list of changes for layers and phases.
func (r *reader) rules(key string, v document.Value) bool {
	items, isList := v.List()
	if !isList {
		r.fail(v.Origin(), key, "given %s, want a list of rules, each a mapping with layers or phase; write [] for none", v.Describe())
		return false
	}
	rules, before := make([]oppolicy.Rule, len(items)), len(r.faults)
	for i, item := range items {
		rules[i] = r.rule(fmt.Sprintf("%s[%d]", key, i), item)
	}
	r.policy.Rules = rules
	return len(r.faults) == before
}

// rule reads where a rule applies and what it changes. The changes have the keys of a policy
// document and are read by another reader.
func (r *reader) rule(key string, v document.Value) oppolicy.Rule {
	rule, in := oppolicy.Rule{Source: v.Origin().Source()}, &reader{once: r.once}
	readers := []keyReader{
		{"layers", into(&rule.Layers, in.layers)},
		{"phase", into(&rule.Phase, in.phase)},
		{string(oppolicy.FieldPrefer), in.prefer},
		{string(oppolicy.FieldAllow), in.allow},
		{string(oppolicy.FieldDeny), in.deny},
		{string(oppolicy.FieldPerOp), in.perOp},
	}
	m, ok := v.Map()
	if !ok {
		r.fail(v.Origin(), key, "given %s, want a mapping with the keys %s", v.Describe(), strings.Join(keysOf(readers), ", "))
		return rule
	}
	in.mapping(v, key, readers)
	where, changes := keysOf(readers[:2]), keysOf(readers[2:])
	rule.Prefer, rule.Allow, rule.Deny, rule.PerOp = in.policy.Prefer, in.policy.Allow, in.policy.Deny, in.policy.PerOp
	given := func(keys ...string) bool {
		return slices.ContainsFunc(m.Keys(), func(key string) bool { return slices.Contains(keys, key) })
	}
	switch {
	case !given(where...):
		in.fail(v.Origin(), key, "given neither %s, want at least one; write values for all layers and phases outside of rules", strings.Join(where, " nor "))
	case in.policy.PreferTuned:
		in.fail(v.Origin(), key, "given prefer: tuned, want flagos, vendor or reference in a rule; write tuned in an order of per_op")
	case len(in.faults) == 0 && rule.Prefer == 0 && rule.Allow == nil && len(rule.Deny)+len(rule.PerOp) == 0:
		in.fail(v.Origin(), key, "given a rule that changes nothing, want one of %s in it", strings.Join(changes, ", "))
	}
	r.faults = append(r.faults, in.faults...)
	return rule
}

// layers reads a number, a text such as 0-3,7, or a list of numbers and ranges.
func (r *reader) layers(key string, v document.Value) ([]oppolicy.LayerRange, bool) {
	items, oneEach := v.List()
	if !oneEach {
		items = []document.Value{v}
	}
	if len(items) == 0 {
		r.fail(v.Origin(), key, "given no layer, want a number counted from 0, a range such as 0-3, or a list of them")
		return nil, false
	}
	var layers []oppolicy.LayerRange
	before := len(r.faults)
	for i, item := range items {
		name := key
		if oneEach {
			name = fmt.Sprintf("%s[%d]", key, i)
		}
		switch {
		case item.Kind() != document.KindInt && item.Kind() != document.KindString:
			r.fail(item.Origin(), name, "given %s, want a number counted from 0, or a range such as 0-3", item.Describe())
		case oneEach && strings.Contains(item.Text(), ","):
			r.fail(item.Origin(), name, "given %s, want one number or range", item.Describe())
		default:
			r.accept(name, item, func(value, source string) error {
				more, err := oppolicy.ParseLayers(value, source)
				layers = append(layers, more...)
				return err
			})
		}
	}
	return layers, len(r.faults) == before
}

func (r *reader) phase(key string, v document.Value) (phase oppolicy.Phase, ok bool) {
	if v.Kind() != document.KindString {
		r.fail(v.Origin(), key, "given %s, want forward or backward", v.Describe())
		return 0, false
	}
	ok = r.accept(key, v, func(value, _ string) (err error) {
		phase, err = oppolicy.ParsePhase(value)
		return err
	})
	return phase, ok
}
