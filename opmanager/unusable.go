package opmanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// UnusableImpl is an impl that was asked for and serves no call: one that the
// policy ranks before the impl that serves an op, by name or by preference, and
// that cannot run; or one that has no impl of another op of the same family, which
// no policy can bring into use.
type UnusableImpl struct {
	ImplInfo
	Ops    []string `json:"ops"` // that have this reason, in the order of the registry
	Reason string   `json:"reason"`
	// Rules are the rules for layers and phases under which this is so, "" for none.
	Rules string `json:"rules,omitempty"`
}

// maxUnusableOps bounds how many ops the text of an UnusableImpl names.
const maxUnusableOps = 3

// String names the impl, its ops and the reason.
func (u UnusableImpl) String() string {
	ops := slices.Clone(u.Ops[:min(len(u.Ops), maxUnusableOps)])
	for i := range ops {
		ops[i] = "'" + ops[i] + "'"
	}
	text := strings.Join(ops, ", ")
	if more := len(u.Ops) - len(ops); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	word := "op"
	if len(u.Ops) > 1 {
		word = "ops"
	}
	return fmt.Sprintf("Implementation '%s' cannot serve %s %s: %s%s", u.ID, word, text, u.Reason, underRules(u.Rules))
}

// Unusable returns the impls that were asked for and serve no call, by id. What
// the policy leaves out by allow and deny lists is not asked for.
func (m *Manager) Unusable() []UnusableImpl {
	type key struct{ id, reason, rules string }
	found := map[key]*UnusableImpl{}
	for _, t := range m.tables() {
		for i, op := range t.registry.Ops() {
			for _, e := range t.registry.Impls(i) {
				reason := m.core.unusable(t, i, &e)
				if reason == "" {
					continue
				}
				k := key{e.ID, reason, t.line.rules}
				if t.line.rules != "" && found[key{e.ID, reason, ""}] != nil {
					continue // the rules change nothing about it
				}
				if found[k] == nil {
					info := ImplInfo{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Source: e.Source}
					found[k] = &UnusableImpl{ImplInfo: info, Reason: reason, Rules: t.line.rules}
				}
				found[k].Ops = append(found[k].Ops, op.Name())
			}
		}
	}
	all := make([]UnusableImpl, 0, len(found))
	for _, u := range found {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b UnusableImpl) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Rules, b.Rules), strings.Compare(a.Ops[0], b.Ops[0]))
	})
	return all
}

// unusable returns why an impl of an op that was asked for serves no call of it, ""
// for one that is a candidate or was not asked for.
func (c *core) unusable(t *table, op int, e *opregistry.Entry) string {
	r := &t.rows[op]
	if position(r.order, e.ID) >= 0 || t.policy.allows(e.Vendor, t.registry.Vendor) != "" {
		return ""
	}
	name := t.registry.Ops()[op].Name()
	quarantined, _ := c.quarantine.standing(name, e.ID)
	own := cmp.Or(t.available[e.Number], quarantined, t.policy.reproducible(e.Determinism))
	missing := t.missing(op, e.ID)
	switch {
	case missing != "":
		return missing
	case own == "" || !t.before(r, op, e):
		return "" // what is wrong with an op of its family is said of that op
	}
	return own
}

// missing says which op of the family has no impl of this id, "" where every op has one.
func (t *table) missing(op int, id string) string {
	ops := t.registry.Ops()
	family := ops[op].Family()
	if family == "" {
		return ""
	}
	for i, other := range ops {
		if other.Family() == family && !slices.ContainsFunc(t.registry.Impls(i), func(e opregistry.Entry) bool { return e.ID == id }) {
			return missingImpl(id, other.Name())
		}
	}
	return ""
}

// missingImpl says that the impl of an op cannot be used without one of another.
func missingImpl(id, op string) string {
	return fmt.Sprintf("no impl %s of %s, which shares saved state with this op", id, op)
}

// before reports whether the policy ranks an impl before the one that serves the op.
func (t *table) before(r *row, op int, e *opregistry.Entry) bool {
	lead := r.leader(op)
	tokens, _ := t.policy.Order(t.registry.Ops()[lead].Name())
	place := func(c Candidate) int {
		return slices.IndexFunc(tokens, func(token Token) bool { return token.matches(c, t.registry.Vendor) })
	}
	entries := t.registry.Impls(lead)
	if i := slices.IndexFunc(entries, func(o opregistry.Entry) bool { return o.ID == e.ID }); i >= 0 {
		e = &entries[i]
	}
	asked := asCandidate(*e)
	if place(asked) < 0 {
		return false
	}
	if r.head == nil {
		return true
	}
	serves := asCandidate(entryOf(entries, r.head.info.ID))
	return cmp.Or(cmp.Compare(place(asked), place(serves)), compareCandidates(asked, serves)) < 0
}
