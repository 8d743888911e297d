package ops

import (
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// Resolution says which impl of a catalogue a policy selects for an op.
type Resolution struct {
	Policy     oppolicy.View        `json:"policy"`
	Candidates []string             `json:"candidates"` // best first
	Selected   string               `json:"selected"`
	Rejected   []oppolicy.Rejection `json:"rejected"`
	Warnings   []string             `json:"warnings"`

	Explanation opmanager.Explanation `json:"-"`
}

// Resolve ranks the impls of an op in a catalogue. The error says of every impl why it cannot be
// selected.
func Resolve(policy oppolicy.Policy, op string, entries []Entry) (Resolution, error) {
	vendor := opregistry.NewRegistry().Snapshot().Vendor
	known := oppolicy.Names{Missing: "which the catalogue does not list"}
	var impls []oppolicy.Candidate
	for _, e := range entries {
		known.Ops = append(known.Ops, e.Op)
		known.Impls = append(known.Impls, e.Impl.ID)
		if e.Impl.Vendor != "" {
			known.Vendors = append(known.Vendors, vendor(e.Impl.Vendor))
		}
		if e.Op == op {
			impls = append(impls, e.Impl)
		}
	}
	r := Resolution{
		Policy: policy.View(), Explanation: opmanager.Explain(policy, op, impls, vendor),
		Candidates: []string{}, Rejected: []oppolicy.Rejection{}, Warnings: append([]string{}, policy.Warnings(known, vendor)...),
	}
	r.Selected = r.Explanation.Selected
	for _, s := range r.Explanation.Order {
		r.Candidates = append(r.Candidates, s.ID)
	}
	for _, s := range r.Explanation.Rejected {
		r.Rejected = append(r.Rejected, oppolicy.Rejection{ID: s.ID, Reason: s.Reason})
	}
	switch {
	case len(impls) == 0:
		return r, fmt.Errorf("op %q: the catalogue lists no impl of it%s", op, suggest.Hint(op, known.Ops))
	case r.Selected == "":
		parts := []string{fmt.Sprintf("op %q: no impl can be selected", op)}
		for _, rej := range r.Rejected {
			parts = append(parts, fmt.Sprintf("impl %q: %s", rej.ID, rej.Reason))
		}
		return r, errors.New(strings.Join(append(parts, r.Warnings...), "; "))
	}
	return r, nil
}
