package oppolicy

import (
	"fmt"
	"slices"

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
// names, with the source in the policy and the nearest known name. resolve maps the aliases of
// vendors to their names.
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
	orders := func(rules []OpRule) {
		for _, rule := range rules {
			missing("op", rule.Pattern, rule.Source, known.Ops)
			for _, token := range rule.Order {
				if token.Vendor != "" {
					vendor(token.Vendor, rule.Source)
				}
				if token.Impl != "" {
					missing("impl", token.Impl, rule.Source, known.Impls)
				}
			}
		}
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
		missing("op", pattern, p.Source(FieldVerify), known.Ops)
	}
	return slices.Compact(warnings)
}
