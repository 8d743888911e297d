package oppolicy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/opregistry"
)

// View is a Policy in the form that commands print.
type View struct {
	Prefer         opregistry.Kind     `json:"prefer"`
	Tuned          bool                `json:"prefer_tuned,omitzero"` // the tuned impl comes before the preferred kind
	Tuning         string              `json:"tuning,omitzero"`       // the digest of the tuning
	Strict         bool                `json:"strict"`
	PerOp          map[string][]string `json:"per_op_order"` // tokens by op or pattern
	Deny           []string            `json:"deny_vendors"`
	Allow          []string            `json:"allow_vendors"` // null allows all
	SkipCUDA       bool                `json:"skip_cuda"`
	Deterministic  bool                `json:"deterministic,omitzero"`
	ProtectInPlace bool                `json:"protect_in_place"`
	CrossDevice    CrossDevice         `json:"cross_device,omitzero"` // absent for copy
	Rules          []RuleView          `json:"rules"`
	Quarantine     QuarantineView      `json:"quarantine"`
	Verify         VerifyView          `json:"verify"`
	Canary         []CanaryView        `json:"canary,omitempty"`
	Sources        map[string]string   `json:"sources"` // by JSON name, per_op_order.OP and rules[N]
}

// RuleView is a Rule in the form that commands print, without the fields that the rule leaves as
// they are.
type RuleView struct {
	Layers string              `json:"layers,omitzero"` // 0-3,7
	Phase  Phase               `json:"phase,omitzero"`
	Prefer opregistry.Kind     `json:"prefer,omitzero"`
	Allow  []string            `json:"allow_vendors,omitzero"`
	Deny   []string            `json:"deny_vendors,omitempty"`
	PerOp  map[string][]string `json:"per_op_order,omitempty"`
}

// QuarantineView is a Quarantine in the form that commands print, with the defaults filled in.
type QuarantineView struct {
	Enabled  bool   `json:"enabled"`
	Failures int    `json:"failures"`
	Window   string `json:"window"` // 1m
	Backoff  string `json:"backoff"`
}

// VerifyView is a Verify in the form that commands print.
type VerifyView struct {
	Mode       string   `json:"mode"`     // off, first, sampled, always, or the fraction
	Fraction   float64  `json:"fraction"` // 0 unless the mode is always or a fraction
	Ops        []string `json:"ops"`      // null means all
	Quarantine bool     `json:"quarantine"`
}

// CanaryView is a Canary in the form that commands print.
type CanaryView struct {
	Op       string  `json:"op"`
	Impl     string  `json:"impl"`
	Fraction float64 `json:"fraction"`
	Calls    int     `json:"calls"`
}

// viewPerOp is the name of FieldPerOp in a View, as policies of TransformerEngine-FL spell it.
const viewPerOp = "per_op_order"

// View returns the policy in the form that commands print, with vendors sorted and without
// duplicates, tokens as text, and a source for every field.
func (p Policy) View() View {
	v := View{
		Prefer: p.Prefer, Strict: p.Strict, SkipCUDA: p.SkipCUDA, Deterministic: p.Deterministic, ProtectInPlace: p.ProtectInPlace,
		PerOp: viewOrders(p.PerOp), Deny: append([]string{}, vendorSet(p.Deny)...), Allow: vendorSet(p.Allow),
		Rules:   []RuleView{},
		Verify:  VerifyView{Mode: p.Verify.mode(), Fraction: p.Verify.Fraction, Ops: p.Verify.Ops, Quarantine: !p.Verify.ReportOnly},
		Sources: map[string]string{},
	}
	if v.Tuned = p.PreferTuned; p.Tuning != nil {
		v.Tuning = p.Tuning.Digest
		v.Sources["tuning"] = p.Tuning.Source
	}
	if p.CrossDevice != CrossDeviceCopy {
		v.CrossDevice = p.CrossDevice
	}
	for _, rule := range p.PerOp {
		v.Sources[viewPerOp+"."+rule.Pattern] = rule.source()
	}
	for i, rule := range p.Rules {
		v.Rules = append(v.Rules, RuleView{
			Layers: FormatLayers(rule.Layers), Phase: rule.Phase, Prefer: rule.Prefer,
			Allow: vendorSet(rule.Allow), Deny: vendorSet(rule.Deny), PerOp: viewOrders(rule.PerOp),
		})
		v.Sources[fmt.Sprintf("%s[%d]", FieldRules, i)] = cmp.Or(rule.Source, sourceProgram)
	}
	for _, c := range p.Canary {
		v.Canary = append(v.Canary, CanaryView{Op: c.Op, Impl: c.Impl.String(), Fraction: c.Fraction, Calls: c.Limit()})
		v.Sources[string(FieldCanary)+"."+c.Op] = c.source()
	}
	set := p.Quarantine.WithDefaults()
	v.Quarantine = QuarantineView{Enabled: !set.Disabled, Failures: set.Failures, Window: shortTime(set.Window), Backoff: shortTime(set.Backoff)}
	for _, field := range fields {
		name := string(field)
		if field == FieldPerOp {
			name = viewPerOp
		}
		v.Sources[name] = p.Source(field)
	}
	return v
}

func viewOrders(rules []OpRule) map[string][]string {
	orders := make(map[string][]string, len(rules))
	for _, rule := range rules {
		for _, token := range rule.Order {
			orders[rule.Pattern] = append(orders[rule.Pattern], token.String())
		}
	}
	return orders
}

// shortTime formats a duration without zero units at its end: 1m, not 1m0s.
func shortTime(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// MarshalJSON encodes the policy's View.
func (p Policy) MarshalJSON() ([]byte, error) { return json.Marshal(p.View()) }

// Fingerprint returns a short text that is the same for policies with the same values, wherever the
// values came from.
func (p Policy) Fingerprint() string {
	view := p.View()
	view.Sources = nil
	text, err := json.Marshal(view)
	if err != nil {
		panic(fmt.Sprintf("BUG: a policy cannot be written as JSON: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// vendorSet returns a sorted copy of a list without duplicates; nil stays nil.
func vendorSet(names []string) []string {
	set := slices.Clone(names)
	slices.Sort(set)
	return slices.Compact(set)
}

var _ json.Marshaler = Policy{}
