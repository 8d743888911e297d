package opmanager

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// Policy says how impls are ranked and filtered. It is a value: make a copy and
// change it to derive another, and do not change one that a Manager uses.
type Policy struct {
	// Prefer is the kind that comes first where no rule in PerOp applies.
	Prefer opregistry.Kind

	// Strict makes a call fail where it would fall back.
	Strict bool

	// Allow lists the vendors whose impls may be used; nil allows all, an empty
	// list none. "*" stands for every vendor.
	Allow []string

	// Deny lists vendors whose impls are not used; it beats Allow.
	Deny []string

	// SkipCUDA leaves out the impls of vendor nvidia, whether there are any or not.
	SkipCUDA bool

	// Deterministic leaves out the impls that do not declare to compute the same
	// bits with any number of workers.
	Deterministic bool

	// PerOp replaces the preference for the ops that a rule's pattern matches.
	PerOp []OpRule

	// ProtectInPlace copies operands that an op updates in place before each
	// call, so that a failed call can be undone and fall back.
	ProtectInPlace bool

	// Rules change the policy for some layers and phases.
	Rules []Rule

	// Quarantine says when a failing impl is set aside.
	Quarantine QuarantineSettings

	// Verify says which calls are compared with the reference.
	Verify VerifySettings

	// Sources says for each field that was set where its value came from, such
	// as "environment TE_FL_PREFER".
	Sources map[Field]string

	given map[Field]any // the values that Sources are about, where SetSource recorded them

	// What rules have added for a scope: allow lists that apply besides Allow, and
	// orders that come before PerOp, the last rule's first.
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
	FieldRules         Field = "rules"
	FieldQuarantine    Field = "quarantine"
	FieldVerify        Field = "verify"
)

// OpRule is the order of tokens for the ops that a pattern matches.
type OpRule struct {
	// Pattern is an op name, in which * stands for any letters.
	Pattern string
	// Order lists what may be used, best first; anything else is not used.
	Order []Token
	// Source says where the rule came from.
	Source string
}

// DefaultPolicy prefers flagos, allows every vendor and falls back.
func DefaultPolicy() Policy { return Policy{Prefer: opregistry.KindFlagos} }

// Token names a set of impls: those of a kind, of a vendor, or one impl.
type Token struct {
	Kind   opregistry.Kind // set unless Impl is
	Vendor string          // with KindVendor: one vendor only
	Impl   string          // one impl id
}

// String returns the token as policies spell it.
func (t Token) String() string {
	switch {
	case t.Impl != "":
		return "impl:" + t.Impl
	case t.Vendor != "":
		return "vendor:" + t.Vendor
	default:
		return t.Kind.String()
	}
}

// ParseToken reads a kind, vendor:NAME or impl:ID. Kinds and vendor names may be
// in any case; "default" is the old name of flagos.
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
	}
	kind, err := opregistry.ParseKind(text)
	if err != nil {
		return Token{}, fmt.Errorf("unknown token %q: want flagos, vendor, vendor:NAME, reference or impl:ID%s", text, tokenHint(text))
	}
	return Token{Kind: kind}, nil
}

func tokenHint(text string) string {
	switch {
	case strings.Contains(text, ","):
		return "; tokens are separated by |"
	case strings.Contains(text, "."):
		return fmt.Sprintf("; did you mean %q?", "impl:"+text)
	}
	if hint := nearestHint(text, "flagos", "vendor", "reference", "default"); hint != "" {
		return hint
	}
	if vendorProblem(text) == "" {
		return fmt.Sprintf("; did you mean %q?", "vendor:"+text)
	}
	return ""
}

// vendorProblem returns why a text cannot be the name of a vendor in a policy.
func vendorProblem(name string) string {
	lower := strings.ToLower(name)
	switch {
	case name == "":
		return "the vendor's name is missing"
	case strings.ContainsAny(name, " \t\r\n"):
		return fmt.Sprintf("vendor %q has a blank inside; names are separated by commas", name)
	case strings.ContainsAny(name, ";|"):
		return fmt.Sprintf("vendor %q has a %q inside; names are separated by commas", name, name[strings.IndexAny(name, ";|")])
	case lower == "flagos" || lower == "reference" || lower == "vendor" || lower == "default":
		return fmt.Sprintf("%q is a kind of impl, not a vendor; kinds go into the preference or a per-op order", name)
	case strings.ContainsAny(name, ":=,."):
		return fmt.Sprintf("%q is not the name of a vendor; give the name alone, such as acme; single impls go into a per-op order as impl:ID", name)
	case strings.Contains(name, "*") && name != "*":
		return fmt.Sprintf("vendor %q: * stands alone for every vendor", name)
	}
	return ""
}

// defaultOrder is the order of kinds for a preference.
func defaultOrder(prefer opregistry.Kind) []Token {
	switch prefer {
	case opregistry.KindVendor:
		return []Token{{Kind: opregistry.KindVendor}, {Kind: opregistry.KindFlagos}, {Kind: opregistry.KindReference}}
	case opregistry.KindReference:
		return []Token{{Kind: opregistry.KindReference}, {Kind: opregistry.KindFlagos}, {Kind: opregistry.KindVendor}}
	default:
		return []Token{{Kind: opregistry.KindFlagos}, {Kind: opregistry.KindVendor}, {Kind: opregistry.KindReference}}
	}
}

// Order returns the tokens for an op and where they come from. A rule for
// exactly this name beats patterns, and the longest pattern beats shorter ones.
func (p *Policy) Order(op string) (order []Token, source string) {
	for _, rules := range p.scopedPerOp {
		if rule := ruleFor(op, rules); rule != nil {
			return rule.Order, rule.source()
		}
	}
	if rule := ruleFor(op, p.PerOp); rule != nil {
		return rule.Order, rule.source()
	}
	return defaultOrder(p.Prefer), p.source(FieldPrefer)
}

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

// The sources of values that no text brought.
const (
	sourceDefault = "default"
	sourceProgram = "the program" // that made the policy
)

// source returns where the value of a field came from.
func (p *Policy) source(f Field) string {
	if s, ok := p.Sources[f]; ok {
		if given, known := p.given[f]; !known || reflect.DeepEqual(given, p.value(f)) {
			return s
		}
		return sourceProgram // it was changed since
	}
	if p.set(f) {
		return sourceProgram
	}
	return sourceDefault
}

// set reports whether a field has another value than DefaultPolicy gives it.
func (p *Policy) set(f Field) bool {
	usual := DefaultPolicy()
	return (f != FieldPrefer || p.Prefer != opregistry.KindUnspecified) && !reflect.DeepEqual(p.value(f), usual.value(f))
}

// value returns the value of a field.
func (p *Policy) value(f Field) any {
	switch f {
	case FieldPrefer:
		return p.Prefer
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
	case FieldRules:
		return p.Rules
	case FieldQuarantine:
		return p.Quarantine
	case FieldVerify:
		return p.Verify
	}
	return nil
}

// source returns where a rule came from.
func (r *OpRule) source() string { return cmp.Or(r.Source, sourceProgram) }

// SetSource records where the value that a field has now came from. A value that the
// program gives the field later is explained as the program's.
func (p *Policy) SetSource(f Field, source string) {
	// Copies of the policy share the maps, which therefore are not written to.
	sources, given := maps.Clone(p.Sources), maps.Clone(p.given)
	if sources == nil {
		sources = map[Field]string{}
	}
	if given == nil {
		given = map[Field]any{}
	}
	sources[f], given[f] = source, p.value(f)
	p.Sources, p.given = sources, given
}

// matchPattern reports whether a name fits a pattern in which * stands for any
// letters.
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

// reproducible returns why impls that declare this may not be used, "" when they may.
func (p *Policy) reproducible(d opregistry.Determinism) string {
	if !p.Deterministic || d != opregistry.DeterminismUndeclared {
		return ""
	}
	return fmt.Sprintf("it does not declare to compute the same bits with any number of threads, which %s asks for", p.source(FieldDeterministic))
}

// cudaVendor is whose impls SkipCUDA leaves out.
const cudaVendor = "nvidia"

// allows returns why impls of a vendor may not be used, "" when they may. The
// names of the policy are resolved by alias, as the vendor's is.
func (p *Policy) allows(vendor string, resolve func(string) string) string {
	if vendor == "" {
		return ""
	}
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(v string) bool { return v == "*" || resolve(v) == resolve(vendor) })
	}
	switch {
	case p.SkipCUDA && resolve(vendor) == resolve(cudaVendor):
		return fmt.Sprintf("vendor %s is left out by %s", vendor, p.source(FieldSkip))
	case named(p.Deny):
		return fmt.Sprintf("vendor %s is denied by %s", vendor, p.source(FieldDeny))
	case p.Allow != nil && !named(p.Allow), slices.ContainsFunc(p.scopedAllow, func(list []string) bool { return !named(list) }):
		return fmt.Sprintf("vendor %s is not among those allowed by %s", vendor, p.source(FieldAllow))
	}
	return ""
}
