package oppolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// Candidate is an impl as Select sees it.
type Candidate struct {
	ID       string
	Kind     opregistry.Kind
	Vendor   string
	Priority int
	// Determinism and Measured are what the impl declares.
	Determinism opregistry.Determinism
	Measured    opregistry.Measurement
	// Unusable is the reason why the impl cannot run now, "" if it can.
	Unusable string
}

// Rejection is an impl that cannot serve calls, with the reason.
type Rejection struct {
	ID     string `json:"impl_id"`
	Reason string `json:"reason"`
}

// Select ranks the impls of an op. It returns the indexes of the impls that may serve calls, best
// first, and the reason why each of the others may not. resolve maps the aliases of vendors to
// their names.
//
// The order of the tokens decides first. Impls that match the same token are ordered by priority,
// then by measured rate, then by id, the largest first.
func (p *Policy) Select(op string, impls []Candidate, resolve func(string) string) (order []int, rejected []Rejection) {
	tokens, source := p.Order(op)
	reasons := make([]string, len(impls))
	for i, impl := range impls {
		reasons[i] = cmp.Or(p.RejectVendor(impl.Vendor, resolve), impl.Unusable, p.RejectDeterminism(impl.Determinism))
	}
	taken := make([]bool, len(impls))
	for _, token := range tokens {
		first := len(order)
		for i, impl := range impls {
			if reasons[i] == "" && !taken[i] && token.Matches(impl, resolve) {
				taken[i] = true
				order = append(order, i)
			}
		}
		slices.SortFunc(order[first:], func(a, b int) int { return CompareCandidates(impls[a], impls[b]) })
	}
	for i, impl := range impls {
		if taken[i] {
			continue
		}
		if reasons[i] == "" {
			reasons[i] = fmt.Sprintf("not in the per-op order %s (%s)", FormatOrder(tokens), source)
		}
		rejected = append(rejected, Rejection{ID: impl.ID, Reason: reasons[i]})
	}
	return order, rejected
}

// CompareCandidates compares two impls that match the same token. The result is negative if a comes
// before b.
func CompareCandidates(a, b Candidate) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Measured.Rate, a.Measured.Rate), strings.Compare(b.ID, a.ID))
}

// Matches reports whether the token stands for an impl.
func (t Token) Matches(c Candidate, resolve func(string) string) bool {
	switch {
	case t.Impl != "" || t.Tuned:
		return c.ID == t.Impl
	case t.Vendor != "":
		return c.Kind == opregistry.KindVendor && (t.Vendor == "*" || resolve(c.Vendor) == resolve(t.Vendor))
	default:
		return c.Kind == t.Kind
	}
}

// FormatOrder returns tokens as a policy spells them, separated by |.
func FormatOrder(tokens []Token) string {
	names := make([]string, len(tokens))
	for i, t := range tokens {
		names[i] = t.String()
	}
	return strings.Join(names, "|")
}
