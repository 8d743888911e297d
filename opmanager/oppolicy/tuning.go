package oppolicy

import (
	"fmt"
	"slices"
)

// Tuning is the choice of impls by measurement: for each op the impl that was fastest, over all
// calls and for some of them. It is immutable.
type Tuning struct {
	// Source says where it came from, such as "tuning file tune.json".
	Source string
	// Digest is the same for tunings with the same choices.
	Digest string
	Ops    map[string]TunedOp
}

// TunedOp is the choice for an op.
type TunedOp struct {
	Impl  string // the fastest over all calls that were measured
	Why   string // "tuned: 1.31x faster than default.flagos …"
	Calls []TunedCall
}

// TunedCall is the choice for the calls with one signature, where it is another one than that of
// the op.
type TunedCall struct {
	Signature uint64 // opregistry.Call.Signature
	Impl      string
	Why       string
}

// impls returns the ids of the impls that are chosen, sorted.
func (t *Tuning) impls() []string {
	if t == nil {
		return nil
	}
	var ids []string
	for _, op := range t.Ops {
		ids = append(ids, op.Impl)
		for _, call := range op.Calls {
			ids = append(ids, call.Impl)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// preferTuned is the value of a preference that asks for the tuned impl, and the token for it.
const preferTuned = "tuned"

// UseTuning makes the tuned impl of each op come first, unless the preference was set explicitly.
func (p *Policy) UseTuning(t *Tuning) {
	p.Tuning = t
	if p.Source(FieldPrefer) == sourceDefault {
		p.PreferTuned = true
		p.SetSource(FieldPrefer, t.Source)
	}
}

// tuned returns the tuned impl of an op, "" for none.
func (p *Policy) tuned(op string) string {
	if p.Tuning == nil {
		return ""
	}
	return p.Tuning.Ops[op].Impl
}

// Tuned returns what the tuning says of an op if the policy asks for it: the choice for all calls,
// and those for some. The order of the op then has a tuned token.
func (p *Policy) Tuned(op string) (TunedOp, bool) {
	order, _ := p.Order(op)
	if p.Tuning == nil || !slices.ContainsFunc(order, func(t Token) bool { return t.Tuned }) {
		return TunedOp{}, false
	}
	choice, ok := p.Tuning.Ops[op]
	return choice, ok
}

// asksForTuned returns the source of the first order that has a tuned token, "" for none.
func (p *Policy) asksForTuned() string {
	if p.PreferTuned {
		return p.Source(FieldPrefer)
	}
	for _, rules := range append([][]OpRule{p.PerOp}, rulesOf(p.Rules)...) {
		for _, rule := range rules {
			if slices.ContainsFunc(rule.Order, func(t Token) bool { return t.Tuned }) {
				return rule.source()
			}
		}
	}
	return ""
}

// TuningHasNoEffect returns why no op would follow a Tuning under the policy, "" if one would.
func (p *Policy) TuningHasNoEffect() string {
	source := p.Source(FieldPrefer)
	if source == sourceDefault || p.asksForTuned() != "" {
		return ""
	}
	return fmt.Sprintf("%s prefers %v: prefer tuned instead, or leave that out", source, p.Prefer)
}

// tuningWarning returns a warning if the policy asks for tuned impls and has no tuning, or if it
// has one and does not ask, "" if not.
func (p *Policy) tuningWarning() string {
	source := p.asksForTuned()
	if p.Tuning == nil && source != "" {
		return fmt.Sprintf("policy: %s asks for tuned impls, but there is no tuning file: make one with primus ops tune and give it with --tune FILE", source)
	}
	if why := p.TuningHasNoEffect(); p.Tuning != nil && why != "" {
		return fmt.Sprintf("policy: %s has no effect, because %s", p.Tuning.Source, why)
	}
	return ""
}

func rulesOf(rules []Rule) (all [][]OpRule) {
	for _, r := range rules {
		all = append(all, r.PerOp)
	}
	return all
}
