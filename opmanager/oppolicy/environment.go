package oppolicy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opregistry"
)

// The environment variables that this package reads.
const (
	EnvPrefer       = "TE_FL_PREFER"
	EnvPreferVendor = "TE_FL_PREFER_VENDOR"
	EnvStrict       = "TE_FL_STRICT"
	EnvAllow        = "TE_FL_ALLOW_VENDORS"
	EnvDeny         = "TE_FL_DENY_VENDORS"
	EnvPerOp        = "TE_FL_PER_OP"
	EnvSkipCUDA     = "TE_FL_SKIP_CUDA"
	EnvCrossDevice  = "TE_FL_CROSS_DEVICE"
	EnvVerify       = "TE_FL_VERIFY"
	EnvCanary       = "TE_FL_CANARY"
	EnvLogLevel     = "TEFL_LOG_LEVEL"
	EnvLogFormat    = "TEFL_LOG_FORMAT"
)

// EnvVariables returns the names of the variables that this package reads: those of a policy, then
// those of the log.
func EnvVariables() []string {
	return []string{
		EnvPrefer, EnvPreferVendor, EnvStrict, EnvAllow, EnvDeny, EnvPerOp, EnvSkipCUDA, EnvCrossDevice, EnvVerify, EnvCanary, EnvLogLevel, EnvLogFormat,
	}
}

// Error is a value that cannot be read.
type Error struct {
	Source  string // where the value came from, such as "environment TE_FL_PER_OP"
	Value   string
	Offset  int // of the first wrong byte in Value
	Problem string
}

// Error returns the source, the value, the position of the fault and what to write instead.
func (e *Error) Error() string {
	return fmt.Sprintf("policy: %s=%q: at %d: %s", e.Source, e.Value, e.Offset+1, e.Problem)
}

// FromEnvironment returns the policy that the TE_FL_* environment variables give; what they do not
// give has its default. The error joins an *Error for each value that cannot be read.
func FromEnvironment(lookup func(string) (string, bool)) (Policy, error) {
	p := Default()
	var faults []error
	read := func(name string, set func(value, source string) error) {
		value, ok := lookup(name)
		if !ok || strings.TrimSpace(value) == "" {
			return
		}
		if err := set(value, "environment "+name); err != nil {
			faults = append(faults, err)
		}
	}
	read(EnvPreferVendor, func(value, source string) error {
		vendor, err := parseBool(value, source)
		if err != nil {
			return err
		}
		prefer := "flagos"
		if vendor {
			prefer = "vendor"
		}
		return p.SetPrefer(prefer, source)
	})
	read(EnvPrefer, p.SetPrefer)
	read(EnvStrict, p.SetStrict)
	read(EnvAllow, p.SetAllow)
	read(EnvDeny, p.SetDeny)
	read(EnvPerOp, p.SetPerOp)
	read(EnvSkipCUDA, p.SetSkipCUDA)
	read(EnvCrossDevice, p.SetCrossDevice)
	read(EnvVerify, p.SetVerify)
	read(EnvCanary, p.SetCanary)
	return p, errors.Join(faults...)
}

// SetPrefer sets the preferred kind from its name, in any case, or with "tuned" the preference for
// the tuned impl before flagos.
func (p *Policy) SetPrefer(value, source string) error {
	if strings.EqualFold(strings.TrimSpace(value), preferTuned) {
		p.Prefer, p.PreferTuned = opregistry.KindFlagos, true
		p.SetSource(FieldPrefer, source)
		return nil
	}
	kind, err := opregistry.ParseKind(value)
	if err != nil {
		name := strings.TrimSpace(value)
		return &Error{Source: source, Value: value, Offset: strings.Index(value, name),
			Problem: fmt.Sprintf("unknown kind %q, want flagos, vendor, reference or tuned%s", name, suggest.Hint(name, []string{"flagos", "vendor", "reference", preferTuned}))}
	}
	p.Prefer, p.PreferTuned = kind, false
	p.SetSource(FieldPrefer, source)
	return nil
}

// SetStrict sets strictness from 1, true, yes or on, or 0, false, no or off.
func (p *Policy) SetStrict(value, source string) error {
	strict, err := parseBool(value, source)
	if err != nil {
		return err
	}
	p.Strict = strict
	p.SetSource(FieldStrict, source)
	return nil
}

// SetSkipCUDA sets whether vendor nvidia is left out, from the words that SetStrict reads.
func (p *Policy) SetSkipCUDA(value, source string) error {
	skip, err := parseBool(value, source)
	if err != nil {
		return err
	}
	p.SkipCUDA = skip
	p.SetSource(FieldSkip, source)
	return nil
}

// SetAllow sets the allowed vendors from a comma-separated list.
func (p *Policy) SetAllow(value, source string) error {
	vendors, err := parseVendors(value, source)
	if err != nil {
		return err
	}
	p.Allow = vendors
	p.SetSource(FieldAllow, source)
	return nil
}

// SetDeny sets the denied vendors from a comma-separated list.
func (p *Policy) SetDeny(value, source string) error {
	vendors, err := parseVendors(value, source)
	if err != nil {
		return err
	}
	p.Deny = vendors
	p.SetSource(FieldDeny, source)
	return nil
}

// SetPerOp replaces the per-op rules with those of a text such as op=token|token;op=token.
func (p *Policy) SetPerOp(value, source string) error {
	var rules []OpRule
	seen := map[string]int{}
	fault := func(at int, format string, args ...any) error {
		return &Error{Source: source, Value: value, Offset: at, Problem: fmt.Sprintf(format, args...)}
	}
	for start, entry := range parts(value, ';') {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		at := start + leadingSpace(entry)
		pattern, order, ok := strings.Cut(entry, "=")
		if !ok {
			return fault(at, "entry %q has no =, want op=token|token", strings.TrimSpace(entry))
		}
		pattern = strings.TrimSpace(pattern)
		if pattern == "" || strings.ContainsAny(pattern, " \t|,:") {
			return fault(at, "%q is not the name of an op, want op=token|token;op=token", pattern)
		}
		if first, twice := seen[pattern]; twice {
			return fault(at, "op %q is given twice, first at %d; keep one", pattern, first+1)
		}
		seen[pattern] = at
		rule := OpRule{Pattern: pattern, Source: fmt.Sprintf("%s at %d", source, at+1)}
		orderStart := start + strings.Index(entry, "=") + 1
		for tokenStart, text := range parts(order, '|') {
			if strings.TrimSpace(text) == "" {
				continue
			}
			token, err := ParseToken(text)
			if err != nil {
				return fault(orderStart+tokenStart+leadingSpace(text), "op %q: %v", pattern, err)
			}
			rule.Order = append(rule.Order, token)
		}
		if len(rule.Order) == 0 {
			return fault(at, "op %q has no token, want flagos, vendor, vendor:NAME, reference, tuned or impl:ID", pattern)
		}
		rules = append(rules, rule)
	}
	if len(rules) > 0 {
		p.PerOp = rules
		p.SetSource(FieldPerOp, source)
	}
	return nil
}

func parseBool(value, source string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, &Error{Source: source, Value: value, Offset: leadingSpace(value),
		Problem: fmt.Sprintf("%q is not a switch, want 1, true, yes or on, or 0, false, no or off", strings.TrimSpace(value))}
}

func parseVendors(value, source string) ([]string, error) {
	var vendors []string
	for start, text := range parts(value, ',') {
		name := strings.TrimSpace(text)
		if name == "" {
			continue
		}
		if problem := vendorProblem(name); problem != "" {
			return nil, &Error{Source: source, Value: value, Offset: start + leadingSpace(text), Problem: problem}
		}
		vendors = append(vendors, opregistry.NormalVendor(name))
	}
	if len(vendors) == 0 {
		return nil, &Error{Source: source, Value: value, Problem: "no vendor between the commas; to restrict nothing, do not set the list"}
	}
	return vendors, nil
}

// parts yields the parts of s between separators, each with its offset.
func parts(s string, sep byte) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		start := 0
		for start <= len(s) {
			end := strings.IndexByte(s[start:], sep)
			if end < 0 {
				end = len(s) - start
			}
			if !yield(start, s[start:start+end]) {
				return
			}
			start += end + 1
		}
	}
}

// leadingSpace returns the number of bytes of white space at the beginning of s.
func leadingSpace(s string) int { return len(s) - len(strings.TrimLeft(s, " \t\r\n")) }
