package policyfile

import (
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// canary reads a mapping from ops to impls on trial.
func (r *reader) canary(key string, v document.Value) bool {
	if v.Kind() != document.KindMap {
		r.fail(v.Origin(), key, "given %s, want a mapping from ops to impls, such as rmsnorm_fwd: {impl: vendor:acme, fraction: 0.05}; write {} for none", v.Describe())
		return false
	}
	canaries, before := []oppolicy.Canary{}, len(r.faults)
	for _, e := range r.entries(v, key) {
		at := e.Value.KeyOrigin()
		if !oppolicy.IsOpName(e.Key) {
			r.fail(at, key, "given %q, want the name of one op, without *", document.Shorten(e.Key))
			continue
		}
		canaries = append(canaries, r.oneCanary(e, at.Source()))
	}
	r.policy.Canary = canaries
	return len(r.faults) == before
}

func (r *reader) oneCanary(e Entry, source string) oppolicy.Canary {
	c := oppolicy.Canary{Op: e.Key, Source: source}
	readers := []keyReader{
		{"impl", into(&c.Impl, r.canaryImpl)},
		{"fraction", into(&c.Fraction, r.canaryFraction)},
		{"calls", into(&c.Calls, r.failures)},
	}
	m, ok := e.Value.Map()
	if !ok {
		r.fail(e.Value.Origin(), e.Name, "given %s, want a mapping with the keys %s", e.Value.Describe(), strings.Join(keysOf(readers), ", "))
		return c
	}
	for _, needed := range readers[:2] {
		if _, given := m.Lookup(needed.key); !given {
			r.fail(e.Value.Origin(), e.Name, "%s is missing, want impl, such as vendor:acme, and fraction, such as 0.05", needed.key)
		}
	}
	r.mapping(e.Value, e.Name, readers)
	return c
}

func (r *reader) canaryImpl(key string, v document.Value) (oppolicy.Token, bool) {
	token, err := oppolicy.Token{}, error(nil)
	if v.Kind() != document.KindString {
		r.fail(v.Origin(), key, "given %s, want one impl: vendor:NAME or impl:ID", v.Describe())
		return token, false
	}
	if token, err = oppolicy.ParseCanaryImpl(v.Text()); err != nil {
		r.fail(v.Origin(), key, "%v", err)
	}
	return token, err == nil
}

func (r *reader) canaryFraction(key string, v document.Value) (float64, bool) {
	x, ok := number(v)
	if problem := oppolicy.CheckCanaryFraction(x); !ok || problem != "" {
		r.fail(v.Origin(), key, "given %s, %s", v.Describe(), oppolicy.CheckCanaryFraction(0))
		return 0, false
	}
	return x, true
}
