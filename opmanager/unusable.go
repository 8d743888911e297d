package opmanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// UnusableImpl is an impl that the user probably expects to serve calls and that cannot serve any.
// Either the policy ranks it before the impl that serves an op and it cannot run, or another op of
// the same family has no impl of the same id, so that no policy can select it.
type UnusableImpl struct {
	ImplInfo
	Ops    []string `json:"ops"` // the ops with this reason, in the order of the registry
	Reason string   `json:"reason"`
	// Rules are the rules for layers and phases to which the reason is limited, "" for none.
	Rules string `json:"rules,omitempty"`
}

// maxUnusableOps bounds the number of ops that the text of an UnusableImpl names.
const maxUnusableOps = 3

// String returns the impl, its ops and the reason.
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

// Unusable returns the unusable impls, sorted by id. Impls of vendors that the policy leaves out
// are not among them.
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
				k := key{e.ID, reason, t.history.rules}
				if t.history.rules != "" && found[key{e.ID, reason, ""}] != nil {
					continue // it is so without the rules, too
				}
				if found[k] == nil {
					info := ImplInfo{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Source: e.Source}
					found[k] = &UnusableImpl{ImplInfo: info, Reason: reason, Rules: t.history.rules}
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

// unusable returns the reason why an impl of an op is unusable, "" if it is not.
func (c *core) unusable(t *table, op int, e *opregistry.Entry) string {
	r := &t.rows[op]
	served := func(rows []row) bool { return position(rows[op].order, e.ID) >= 0 }
	if served(t.rows) || slices.ContainsFunc(t.devices, func(d deviceRows) bool { return served(d.rows) }) || t.policy.RejectVendor(e.Vendor, t.registry.Vendor) != "" {
		return ""
	}
	name := t.registry.Ops()[op].Name()
	quarantined, _ := c.quarantine.state(name, e.ID)
	own := cmp.Or(t.unavailable[e.Number], quarantined, t.policy.RejectDeterminism(e.Determinism))
	missing := t.missing(op, e.ID)
	switch {
	case missing != "":
		return missing
	case own == "" || e.Support.On(device.TypeCPU) != nil || strings.HasPrefix(own, opregistry.ErrNotNeeded.Error()) || !t.ranksFirst(r, op, e):
		return "" // a fault of another op of the family is reported for that op
	}
	return own
}

// missing returns the reason if another op of the family has no impl of this id, "" otherwise.
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

// missingImpl returns the reason why an impl cannot be used if another op has no impl of its id.
func missingImpl(id, op string) string {
	return fmt.Sprintf("no impl %s of %s, which shares saved state with this op", id, op)
}

// ranksFirst reports whether the policy ranks an impl before the one that serves the op.
func (t *table) ranksFirst(r *row, op int, e *opregistry.Entry) bool {
	lead := r.leader(op)
	tokens, _ := t.policy.Order(t.registry.Ops()[lead].Name())
	place := func(c oppolicy.Candidate) int {
		return slices.IndexFunc(tokens, func(token oppolicy.Token) bool { return token.Matches(c, t.registry.Vendor) })
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
	return cmp.Or(cmp.Compare(place(asked), place(serves)), oppolicy.CompareCandidates(asked, serves)) < 0
}
