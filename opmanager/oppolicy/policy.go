package oppolicy

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opregistry"
)

// Policy ranks the impls of ops and says which of them may be used.
type Policy struct {
	// Prefer is the kind that comes first for ops that no rule in PerOp matches.
	Prefer opregistry.Kind

	// PreferTuned makes the impl that Tuning names for an op come before the preferred kind.
	PreferTuned bool

	// Tuning is the choice of impls by measurement, nil for none.
	Tuning *Tuning

	// Strict turns every fallback into an error.
	Strict bool

	// Allow lists the vendors whose impls may be used; nil allows all vendors, an empty list none.
	// "*" stands for every vendor.
	Allow []string

	// Deny lists the vendors whose impls are not used. It takes precedence over Allow.
	Deny []string

	// SkipCUDA leaves out the impls of vendor nvidia.
	SkipCUDA bool

	// Deterministic leaves out impls that do not declare that their results have the same bits
	// with any number of workers.
	Deterministic bool

	// PerOp gives the ops that a rule's pattern matches an order of their own.
	PerOp []OpRule

	// ProtectInPlace copies the operands that an op updates in place before each call, so that a
	// failed call can be undone and fall back.
	ProtectInPlace bool

	// CrossDevice says what happens to calls whose operands lie where no impl serves them.
	CrossDevice CrossDevice

	// Rules change the policy for some layers and phases, in order.
	Rules []Rule

	// Quarantine says when a failing impl is no longer used.
	Quarantine Quarantine

	// Verify says which calls are compared with the reference.
	Verify Verify

	// Canary are the impls on trial.
	Canary []Canary

	// Sources holds where the values of fields came from, such as "environment TE_FL_PREFER".
	Sources map[Field]string

	recorded map[Field]any // the values of fields when SetSource recorded their source

	// Set by For: allow lists that apply in addition to Allow, and orders that take precedence
	// over PerOp, those of the last rule first.
	scopedAllow [][]string
	scopedPerOp [][]OpRule
}

// Field names a field of a Policy in listings and Sources.
type Field string

// The fields of a Policy.
const (
	FieldPrefer        Field = "prefer"
	FieldStrict        Field = "strict"
	FieldAllow         Field = "allow_vendors"
	FieldDeny          Field = "deny_vendors"
	FieldSkip          Field = "skip_cuda"
	FieldDeterministic Field = "deterministic"
	FieldPerOp         Field = "per_op"
	FieldProtect       Field = "protect_in_place"
	FieldCrossDevice   Field = "cross_device"
	FieldRules         Field = "rules"
	FieldQuarantine    Field = "quarantine"
	FieldVerify        Field = "verify"
	FieldCanary        Field = "canary"
)

// fields lists the fields of a Policy in the order of listings.
var fields = []Field{
	FieldPrefer, FieldStrict, FieldAllow, FieldDeny, FieldSkip, FieldDeterministic, FieldPerOp,
	FieldProtect, FieldCrossDevice, FieldRules, FieldQuarantine, FieldVerify, FieldCanary,
}

// OpRule is the order of impls for the ops that a pattern matches.
type OpRule struct {
	// Pattern is the name of an op; * in it matches any text.
	Pattern string
	// Order lists the impls that may be used, best first. All others are left out.
	Order []Token
	// Source says where the rule came from.
	Source string
}

// Default returns the policy that prefers flagos, allows every vendor and falls back.
func Default() Policy { return Policy{Prefer: opregistry.KindFlagos} }

// Token names a set of impls: those of a kind, of a vendor, or one impl.
type Token struct {
	Kind   opregistry.Kind // unspecified if Impl or Tuned is set
	Vendor string          // limits KindVendor to one vendor
	Impl   string          // the id of a single impl
	Tuned  bool            // the impl that the tuning names; in the result of Policy.Order, Impl is its id
}

// String returns the token as policies spell it.
func (t Token) String() string {
	switch {
	case t.Tuned:
		return preferTuned
	case t.Impl != "":
		return "impl:" + t.Impl
	case t.Vendor != "":
		return "vendor:" + t.Vendor
	default:
		return t.Kind.String()
	}
}

// ParseToken reads a kind, vendor:NAME, impl:ID or tuned. Kinds and vendor names may be in any
// case; "default" is the former name of flagos.
func ParseToken(s string) (Token, error) {
	text := strings.TrimSpace(s)
	head, rest, has := strings.Cut(text, ":")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(strings.TrimSpace(head)) {
	case "vendor":
		if !has {
			return Token{Kind: opregistry.KindVendor}, nil
		}
		if problem := vendorProblem(rest); problem != "" {
			return Token{}, fmt.Errorf("token %q: %s; want vendor:NAME", text, problem)
		}
		return Token{Kind: opregistry.KindVendor, Vendor: opregistry.NormalVendor(rest)}, nil
	case "impl":
		if !has || rest == "" || strings.ContainsAny(rest, " \t,;|=") {
			return Token{}, fmt.Errorf("token %q: want impl:ID with the id of one impl, such as impl:vendor.acme", text)
		}
		return Token{Impl: rest}, nil
	case "default":
		if !has {
			return Token{Kind: opregistry.KindFlagos}, nil
		}
	case preferTuned:
		if !has {
			return Token{Tuned: true}, nil
		}
	}
	kind, err := opregistry.ParseKind(text)
	if err != nil {
		return Token{}, fmt.Errorf("unknown token %q: want flagos, vendor, vendor:NAME, reference, tuned or impl:ID%s", text, tokenHint(text))
	}
	return Token{Kind: kind}, nil
}

// tokenHint returns what the author of an unknown token probably meant, "" if that is not clear.
func tokenHint(text string) string {
	switch {
	case strings.Contains(text, ","):
		return "; separate tokens with |"
	case strings.Contains(text, "."):
		return fmt.Sprintf("; did you mean %q?", "impl:"+text)
	}
	if hint := suggest.Hint(text, []string{"flagos", "vendor", "reference", "tuned", "default"}); hint != "" {
		return hint
	}
	if vendorProblem(text) == "" {
		return fmt.Sprintf("; did you mean %q?", "vendor:"+text)
	}
	return ""
}

// vendorProblem returns why a text cannot be the name of a vendor in a policy, "" if it can.
func vendorProblem(name string) string {
	lower := strings.ToLower(name)
	switch {
	case name == "":
		return "the vendor's name is missing"
	case strings.ContainsAny(name, " \t\r\n"):
		return fmt.Sprintf("vendor %q contains a space; separate names with commas", name)
	case strings.ContainsAny(name, ";|"):
		return fmt.Sprintf("vendor %q contains %q; separate names with commas", name, name[strings.IndexAny(name, ";|")])
	case lower == "flagos" || lower == "reference" || lower == "vendor" || lower == "default":
		return fmt.Sprintf("%q is a kind of impl, not a vendor; name kinds in the preference or in a per-op order", name)
	case strings.ContainsAny(name, ":=,."):
		return fmt.Sprintf("%q is not the name of a vendor; give the name alone, such as acme; name a single impl in a per-op order as impl:ID", name)
	case strings.Contains(name, "*") && name != "*":
		return fmt.Sprintf("vendor %q: * cannot be part of a name; alone it stands for every vendor", name)
	}
	return ""
}

// defaultOrder returns the order of kinds for a preference.
func defaultOrder(prefer opregistry.Kind) []Token {
	switch prefer {
	case opregistry.KindVendor:
		return []Token{{Kind: opregistry.KindVendor}, {Kind: opregistry.KindFlagos}, {Kind: opregistry.KindReference}}
	case opregistry.KindReference:
		return []Token{{Kind: opregistry.KindReference}, {Kind: opregistry.KindFlagos}, {Kind: opregistry.KindVendor}}
	case opregistry.KindFlagos, opregistry.KindUnspecified:
		return []Token{{Kind: opregistry.KindFlagos}, {Kind: opregistry.KindVendor}, {Kind: opregistry.KindReference}}
	default:
		panic("BUG: oppolicy: preference for " + prefer.String())
	}
}

// Order returns the tokens for an op and where they come from. A rule with the name of the op takes
// precedence over patterns, and a longer pattern over a shorter one.
func (p *Policy) Order(op string) (order []Token, source string) {
	for _, rules := range p.scopedPerOp {
		if rule := ruleFor(op, rules); rule != nil {
			return p.withTuned(op, rule.Order), rule.source()
		}
	}
	if rule := ruleFor(op, p.PerOp); rule != nil {
		return p.withTuned(op, rule.Order), rule.source()
	}
	order = defaultOrder(p.Prefer)
	if p.PreferTuned {
		order = p.withTuned(op, slices.Insert(order, 0, Token{Tuned: true}))
	}
	return order, p.Source(FieldPrefer)
}

// withTuned returns an order in which tuned tokens have the impl that the tuning names.
func (p *Policy) withTuned(op string, order []Token) []Token {
	i := slices.IndexFunc(order, func(t Token) bool { return t.Tuned })
	if i < 0 {
		return order
	}
	order = slices.Clone(order)
	order[i].Impl = p.tuned(op)
	return order
}

// ruleFor returns the rule that decides about an op, nil if none matches.
func ruleFor(op string, rules []OpRule) *OpRule {
	var best *OpRule
	for i := range rules {
		rule := &rules[i]
		switch {
		case rule.Pattern == op:
			return rule
		case matchPattern(rule.Pattern, op) && (best == nil || len(rule.Pattern) > len(best.Pattern)):
			best = rule
		}
	}
	return best
}

// The sources of values that were not read from a text.
const (
	sourceDefault = "default"
	sourceProgram = "the program" // that made the policy
)

// Source returns where the value of a field came from.
func (p *Policy) Source(f Field) string {
	if s, ok := p.Sources[f]; ok {
		if value, ok := p.recorded[f]; !ok || reflect.DeepEqual(value, p.value(f)) {
			return s
		}
		return sourceProgram // the program changed the field since
	}
	if p.set(f) {
		return sourceProgram
	}
	return sourceDefault
}

// set reports whether the value of a field differs from the one in Default.
func (p *Policy) set(f Field) bool {
	usual := Default()
	if f == FieldPrefer && p.Prefer == opregistry.KindUnspecified {
		return p.PreferTuned
	}
	return !reflect.DeepEqual(p.value(f), usual.value(f))
}

// preference is the value of FieldPrefer.
type preference struct {
	kind  opregistry.Kind
	tuned bool
}

// value returns the value of a field.
func (p *Policy) value(f Field) any {
	switch f {
	case FieldPrefer:
		return preference{p.Prefer, p.PreferTuned}
	case FieldStrict:
		return p.Strict
	case FieldAllow:
		return p.Allow
	case FieldDeny:
		return p.Deny
	case FieldSkip:
		return p.SkipCUDA
	case FieldDeterministic:
		return p.Deterministic
	case FieldPerOp:
		return p.PerOp
	case FieldProtect:
		return p.ProtectInPlace
	case FieldCrossDevice:
		return p.CrossDevice
	case FieldRules:
		return p.Rules
	case FieldQuarantine:
		return p.Quarantine
	case FieldVerify:
		return p.Verify
	case FieldCanary:
		return p.Canary
	}
	return nil
}

// source returns where a rule came from.
func (r *OpRule) source() string { return cmp.Or(r.Source, sourceProgram) }

// SetSource records where the present value of a field came from. If the program changes the field
// later, Source names the program instead.
func (p *Policy) SetSource(f Field, source string) {
	// Copies of the policy share the maps, so these are replaced, not changed.
	sources, recorded := maps.Clone(p.Sources), maps.Clone(p.recorded)
	if sources == nil {
		sources = map[Field]string{}
	}
	if recorded == nil {
		recorded = map[Field]any{}
	}
	sources[f], recorded[f] = source, p.value(f)
	p.Sources, p.recorded = sources, recorded
}

// matchPattern reports whether a name matches a pattern in which * stands for any text.
func matchPattern(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return true
}

// RejectDeterminism returns why the policy leaves out impls that declare d about the bits of their
// results, "" if it does not.
func (p *Policy) RejectDeterminism(d opregistry.Determinism) string {
	if !p.Deterministic || d != opregistry.DeterminismUndeclared {
		return ""
	}
	return fmt.Sprintf("it does not declare that its results have the same bits with any number of threads, which %s requires", p.Source(FieldDeterministic))
}

// cudaVendor is the vendor that SkipCUDA leaves out.
const cudaVendor = "nvidia"

// RejectVendor returns why the policy leaves out the impls of a vendor, "" if it does not. resolve
// maps the aliases of vendors to their names.
func (p *Policy) RejectVendor(vendor string, resolve func(string) string) string {
	if vendor == "" {
		return ""
	}
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(v string) bool { return v == "*" || resolve(v) == resolve(vendor) })
	}
	switch {
	case p.SkipCUDA && resolve(vendor) == resolve(cudaVendor):
		return fmt.Sprintf("vendor %s is left out by %s", vendor, p.Source(FieldSkip))
	case named(p.Deny):
		return fmt.Sprintf("vendor %s is denied by %s", vendor, p.Source(FieldDeny))
	case p.Allow != nil && !named(p.Allow), slices.ContainsFunc(p.scopedAllow, func(list []string) bool { return !named(list) }):
		return fmt.Sprintf("vendor %s is not among those allowed by %s", vendor, p.Source(FieldAllow))
	}
	return ""
}
