package oppolicy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Canary is an impl on trial: it serves a share of the calls of an op, beside the impl that serves
// the others, until it has taken the place of that one or is withdrawn. An op of a family stands
// for all of them.
type Canary struct {
	Op   string // its name, not a pattern
	Impl Token  // the first candidate that it stands for; only vendor:NAME and impl:ID
	// Fraction is the share of the calls, above 0 and up to MaxCanaryFraction.
	Fraction float64
	// Calls is how many calls have to be compared before the impl is promoted; 0 means
	// DefaultCanaryCalls.
	Calls int
	// Source says where the canary came from.
	Source string
}

// MaxCanaryFraction is the largest share of the calls that a canary may have: the present impl has
// to serve as many, so that their times can be compared.
const MaxCanaryFraction = 0.5

// DefaultCanaryCalls is the number of calls after which a canary is promoted or withdrawn.
const DefaultCanaryCalls = 100

// Limit returns the number of calls that are compared before the impl is promoted.
func (c *Canary) Limit() int { return cmp.Or(c.Calls, DefaultCanaryCalls) }

// String returns the canary as TE_FL_CANARY spells it.
func (c *Canary) String() string {
	return c.Op + "=" + c.Impl.String() + "@" + strconv.FormatFloat(c.Fraction, 'g', -1, 64)
}

func (c *Canary) source() string { return cmp.Or(c.Source, sourceProgram) }

// CheckCanaryFraction returns what is wrong with a share of the calls, "" if nothing is.
func CheckCanaryFraction(f float64) string {
	if f > 0 && f <= MaxCanaryFraction {
		return ""
	}
	return fmt.Sprintf("want a number above 0 and at most %v: the present impl has to serve as many calls, to compare the times", MaxCanaryFraction)
}

// ParseCanaryImpl reads vendor:NAME or impl:ID.
func ParseCanaryImpl(text string) (Token, error) {
	token, err := ParseToken(text)
	if err != nil {
		return Token{}, fmt.Errorf("%w; a canary is vendor:NAME or impl:ID", err)
	}
	if token.Impl == "" && (token.Vendor == "" || token.Vendor == "*") {
		return Token{}, fmt.Errorf("given %q, want one impl: vendor:NAME or impl:ID", token)
	}
	return token, nil
}

// SetCanary replaces the canaries with those of a text such as op=vendor:acme@0.05;op=impl:ID@0.1.
func (p *Policy) SetCanary(value, source string) error {
	var canaries []Canary
	fault := func(at int, format string, args ...any) error {
		return &Error{Source: source, Value: value, Offset: at, Problem: fmt.Sprintf(format, args...)}
	}
	for start, entry := range parts(value, ';') {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		at := start + leadingSpace(entry)
		op, rest, ok := strings.Cut(entry, "=")
		text, share, shared := strings.Cut(rest, "@")
		if !ok || !shared {
			return fault(at, "given %q, want op=vendor:NAME@FRACTION, such as rmsnorm_fwd=vendor:acme@0.05", strings.TrimSpace(entry))
		}
		c := Canary{Op: strings.TrimSpace(op), Source: fmt.Sprintf("%s at %d", source, at+1)}
		if !IsOpName(c.Op) {
			return fault(at, "%q is not the name of an op; a canary is for one op, without *", c.Op)
		}
		if slices.ContainsFunc(canaries, func(o Canary) bool { return o.Op == c.Op }) {
			return fault(at, "op %q is given twice; keep one", c.Op)
		}
		var err error
		if c.Impl, err = ParseCanaryImpl(text); err != nil {
			return fault(start+strings.Index(entry, "=")+1+leadingSpace(text), "op %q: %v", c.Op, err)
		}
		shareAt := start + strings.Index(entry, "@") + 1
		if c.Fraction, err = strconv.ParseFloat(strings.TrimSpace(share), 64); err != nil {
			c.Fraction = math.NaN()
		}
		if problem := CheckCanaryFraction(c.Fraction); problem != "" {
			return fault(shareAt+leadingSpace(share), "op %q: given %q as the share of the calls, %s", c.Op, strings.TrimSpace(share), problem)
		}
		canaries = append(canaries, c)
	}
	p.Canary = canaries
	p.SetSource(FieldCanary, source)
	return nil
}

// IsOpName reports whether a text can be the name of an op, and is not a pattern.
func IsOpName(name string) bool { return name != "" && !strings.ContainsAny(name, " \t\r\n|,:;=@*") }

// Contradiction returns an error if two values of the policy cannot be in force together.
func (p *Policy) Contradiction() error {
	if p.Strict && len(p.Canary) > 0 {
		return fmt.Errorf("policy: strict (%s) and canary (%s) are given: a strict policy has one impl for each op and no second one for a call that a canary gets wrong; remove one of them",
			p.Source(FieldStrict), p.Source(FieldCanary))
	}
	return nil
}

// CanaryOf returns the canary of an op, nil if it has none or the policy is strict.
func (p *Policy) CanaryOf(op string) *Canary {
	if p.Strict {
		return nil
	}
	if i := slices.IndexFunc(p.Canary, func(c Canary) bool { return c.Op == op }); i >= 0 {
		return &p.Canary[i]
	}
	return nil
}

// Admit returns the policy with the impl of a canary at the end of the order of an op.
func (p *Policy) Admit(op string, c *Canary) *Policy {
	order, source := p.Order(op)
	if slices.Contains(order, c.Impl) {
		return p
	}
	admitted := *p
	admitted.scopedPerOp = slices.Concat([][]OpRule{{{Pattern: op, Order: append(slices.Clone(order), c.Impl), Source: source}}}, p.scopedPerOp)
	return &admitted
}
