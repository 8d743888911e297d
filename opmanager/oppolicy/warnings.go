package oppolicy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/foreign"
	"github.com/primus-fl/primus/internal/suggest"
)

// Names are the names that a policy can refer to.
type Names struct {
	Ops     []string
	Vendors []string // without aliases
	Impls   []string
	// Missing completes the warning for any other name, such as "which no loaded source registers".
	Missing string
}

// Warnings describes each vendor, op and impl that the policy names and that is not among the known
// names, with the source in the policy and the nearest known name. For an op of
// TransformerEngine-FL that is not dispatched here it names the command that explains it. resolve
// maps the aliases of vendors to their names.
func (p *Policy) Warnings(known Names, resolve func(string) string) []string {
	var warnings []string
	missing := func(what, name, source string, names []string) {
		if !slices.ContainsFunc(names, func(k string) bool { return matchPattern(name, k) }) {
			warnings = append(warnings, fmt.Sprintf("policy: %s names %s %q, %s%s", source, what, name, known.Missing, suggest.Hint(name, names)))
		}
	}
	vendor := func(name, source string) {
		if name != "*" {
			missing("vendor", resolve(name), source, known.Vendors)
		}
	}
	vendors := func(names []string, source string) {
		for _, name := range names {
			vendor(name, source)
		}
	}
	op := func(pattern, source string) {
		other, found := foreignOp(pattern)
		if !found || slices.ContainsFunc(known.Ops, func(k string) bool { return matchPattern(pattern, k) }) {
			missing("op", pattern, source, known.Ops)
			return
		}
		warnings = append(warnings, fmt.Sprintf("policy: %s names op %q, which is not dispatched here: primus ops explain %s", source, pattern, other.Name))
	}
	token := func(token Token, source string) {
		if token.Vendor != "" {
			vendor(token.Vendor, source)
		}
		if token.Impl != "" {
			missing("impl", token.Impl, source, known.Impls)
		}
	}
	orders := func(rules []OpRule) {
		for _, rule := range rules {
			op(rule.Pattern, rule.Source)
			for _, t := range rule.Order {
				token(t, rule.Source)
			}
		}
	}
	if text := p.tuningWarning(); text != "" {
		warnings = append(warnings, text)
	}
	for _, id := range p.Tuning.impls() {
		missing("impl", id, p.Tuning.Source, known.Impls)
	}
	vendors(p.Allow, p.Source(FieldAllow))
	vendors(p.Deny, p.Source(FieldDeny))
	orders(p.PerOp)
	for _, rule := range p.Rules {
		vendors(rule.Allow, rule.Source)
		vendors(rule.Deny, rule.Source)
		orders(rule.PerOp)
	}
	for _, pattern := range p.Verify.Ops {
		op(pattern, p.Source(FieldVerify))
	}
	for _, c := range p.Canary {
		op(c.Op, c.source())
		token(c.Impl, c.source())
	}
	return slices.Compact(warnings)
}

// foreignOp returns the first op that a pattern matches of those that TransformerEngine-FL has and
// that are not ops here.
func foreignOp(pattern string) (foreign.Op, bool) {
	for _, o := range foreign.Ops() {
		if matchPattern(strings.ToLower(pattern), strings.ToLower(o.Name)) {
			return o, true
		}
	}
	return foreign.Op{}, false
}
