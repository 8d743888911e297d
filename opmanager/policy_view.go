package opmanager

import (
	"encoding/json"
	"slices"

	"github.com/primus-fl/primus/opregistry"
)

// PolicyView is a Policy as results show it.
type PolicyView struct {
	Prefer         opregistry.Kind     `json:"prefer"`
	Strict         bool                `json:"strict"`
	PerOp          map[string][]string `json:"per_op_order"` // tokens by op or pattern
	Deny           []string            `json:"deny_vendors"`
	Allow          []string            `json:"allow_vendors"` // null allows all
	SkipCUDA       bool                `json:"skip_cuda"`
	ProtectInPlace bool                `json:"protect_in_place"`
	Sources        map[string]string   `json:"sources"` // by the names above, and per_op_order.OP
}

// viewPerOp is how results call FieldPerOp: with the word that users of
// TransformerEngine-FL know from its policies.
const viewPerOp = "per_op_order"

// View returns the policy for results: vendors sorted and without repetition,
// tokens in words, and a source for every field.
func (p Policy) View() PolicyView {
	v := PolicyView{
		Prefer: p.Prefer, Strict: p.Strict, SkipCUDA: p.SkipCUDA, ProtectInPlace: p.ProtectInPlace,
		PerOp: map[string][]string{}, Deny: append([]string{}, vendorSet(p.Deny)...), Allow: vendorSet(p.Allow),
		Sources: map[string]string{},
	}
	for _, rule := range p.PerOp {
		for _, token := range rule.Order {
			v.PerOp[rule.Pattern] = append(v.PerOp[rule.Pattern], token.String())
		}
		v.Sources[viewPerOp+"."+rule.Pattern] = rule.Source
	}
	for _, field := range []Field{FieldPrefer, FieldStrict, FieldDeny, FieldAllow, FieldSkip, FieldProtect} {
		v.Sources[string(field)] = p.source(field)
	}
	v.Sources[viewPerOp] = p.source(FieldPerOp)
	return v
}

// MarshalJSON writes the policy's View.
func (p Policy) MarshalJSON() ([]byte, error) { return json.Marshal(p.View()) }

// vendorSet returns a sorted list without repetition; nil stays nil.
func vendorSet(names []string) []string {
	set := slices.Clone(names)
	slices.Sort(set)
	return slices.Compact(set)
}

var _ json.Marshaler = Policy{}
