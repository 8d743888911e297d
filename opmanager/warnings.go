package opmanager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// Known are the names that a policy can mean on this machine or in a catalogue.
type Known struct {
	Ops     []string
	Vendors []string // resolved by alias
	Impls   []string
	// Missing ends the warning for any other name, such as "which no loaded
	// source registers".
	Missing string
}

// Warnings lists what the policy names that no loaded source registers: vendors,
// ops and impl ids, each with the nearest known name.
func (m *Manager) Warnings() []string {
	t := m.table.Load()
	return t.policy.Warnings(knownNames(t.registry), t.registry.Vendor)
}

// Warnings lists what the policy names and is not known: vendors, ops and impl
// ids, each with where the policy names it and the nearest known name. resolve
// maps names of vendors to those in known.
func (p *Policy) Warnings(known Known, resolve func(string) string) []string {
	var warnings []string
	missing := func(what, name, source string, names []string) {
		if !slices.ContainsFunc(names, func(k string) bool { return matchPattern(name, k) }) {
			warnings = append(warnings, fmt.Sprintf("policy: %s names %s %q, %s%s", source, what, name, known.Missing, nearestHint(name, names...)))
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
	vendors(p.Allow, p.source(FieldAllow))
	vendors(p.Deny, p.source(FieldDeny))
	orders(p.PerOp)
	for _, rule := range p.Rules {
		vendors(rule.Allow, rule.Source)
		vendors(rule.Deny, rule.Source)
		orders(rule.PerOp)
	}
	for _, pattern := range p.Verify.Ops {
		missing("op", pattern, p.source(FieldVerify), known.Ops)
	}
	return slices.Compact(warnings)
}

func knownNames(snap *opregistry.Snapshot) Known {
	known := Known{Missing: "which no loaded source registers"}
	for i, op := range snap.Ops() {
		known.Ops = append(known.Ops, op.Name())
		for _, e := range snap.Impls(i) {
			known.Impls = append(known.Impls, e.ID)
			if e.Vendor != "" {
				known.Vendors = append(known.Vendors, snap.Vendor(e.Vendor))
			}
		}
	}
	for _, names := range []*[]string{&known.Ops, &known.Vendors, &known.Impls} {
		slices.SortFunc(*names, strings.Compare)
		*names = slices.Compact(*names)
	}
	return known
}
