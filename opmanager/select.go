package opmanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// Candidate is what selection needs to know of an impl.
type Candidate struct {
	ID       string
	Kind     opregistry.Kind
	Vendor   string
	Priority int
	// Determinism and Measured are what the impl declares.
	Determinism opregistry.Determinism
	Measured    opregistry.Measurement
	// Unusable says why the impl cannot run now, "" when it can.
	Unusable string
}

// Rejection is an impl that is not a candidate, and why.
type Rejection struct {
	ID     string `json:"impl_id"`
	Reason string `json:"reason"`
}

// Select ranks the impls of an op by a policy. It returns the indexes of those
// that may serve calls, best first, and the reason for each other. resolve maps
// names of vendors to the ones that impls carry.
//
// Within one token impls are ordered by priority, then by the rate that was
// measured, then by id, all descending; a token never crosses another one's
// priorities.
func (p *Policy) Select(op string, impls []Candidate, resolve func(string) string) (order []int, rejected []Rejection) {
	tokens, source := p.Order(op)
	reasons := make([]string, len(impls))
	for i, impl := range impls {
		reasons[i] = cmp.Or(p.allows(impl.Vendor, resolve), impl.Unusable, p.reproducible(impl.Determinism))
	}
	taken := make([]bool, len(impls))
	for _, token := range tokens {
		first := len(order)
		for i, impl := range impls {
			if reasons[i] == "" && !taken[i] && token.matches(impl, resolve) {
				taken[i] = true
				order = append(order, i)
			}
		}
		slices.SortFunc(order[first:], func(a, b int) int { return compareCandidates(impls[a], impls[b]) })
	}
	for i, impl := range impls {
		if taken[i] {
			continue
		}
		if reasons[i] == "" {
			reasons[i] = fmt.Sprintf("not in the per-op order %s%s", tokenList(tokens), inBrackets(source))
		}
		rejected = append(rejected, Rejection{ID: impl.ID, Reason: reasons[i]})
	}
	return order, rejected
}

// compareCandidates orders the impls that match one token.
func compareCandidates(a, b Candidate) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Measured.Rate, a.Measured.Rate), strings.Compare(b.ID, a.ID))
}

func (t Token) matches(c Candidate, resolve func(string) string) bool {
	switch {
	case t.Impl != "":
		return c.ID == t.Impl
	case t.Vendor != "":
		return c.Kind == opregistry.KindVendor && (t.Vendor == "*" || resolve(c.Vendor) == resolve(t.Vendor))
	default:
		return c.Kind == t.Kind
	}
}

func tokenList(tokens []Token) string {
	names := make([]string, len(tokens))
	for i, t := range tokens {
		names[i] = t.String()
	}
	return strings.Join(names, "|")
}
