package policyfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// into returns a reader that stores what read returns.
func into[T any](to *T, read func(key string, v document.Value) (T, bool)) func(key string, v document.Value) bool {
	return func(key string, v document.Value) (ok bool) {
		*to, ok = read(key, v)
		return ok
	}
}

// quarantine reads a switch, or a mapping with the settings. Settings that are left out have their
// defaults, whatever the policy of lower precedence says.
func (r *reader) quarantine(key string, v document.Value) bool {
	set := &r.policy.Quarantine
	enabled := func(key string, v document.Value) bool {
		on, ok := r.toggle(key, v)
		set.Disabled = !on
		return ok
	}
	readers := []keyReader{
		{"enabled", enabled},
		{"failures", into(&set.Failures, r.failures)},
		{"window", into(&set.Window, r.duration)},
		{"backoff", into(&set.Backoff, r.duration)},
	}
	switch v.Kind() {
	case document.KindMap:
		before := len(r.faults)
		r.mapping(v, key, readers)
		return len(r.faults) == before
	case document.KindBool, document.KindInt, document.KindString:
		return enabled(key, v)
	}
	r.fail(v.Origin(), key, "given %s, want on, off or a mapping with the keys %s", v.Describe(), strings.Join(keysOf(readers), ", "))
	return false
}

// verify reads a mode, a fraction, or a mapping with the settings.
func (r *reader) verify(key string, v document.Value) bool {
	set := &r.policy.Verify
	mode := func(key string, v document.Value) bool {
		var p oppolicy.Policy
		ok := r.verified(key, v, &p)
		set.Mode, set.Fraction = p.Verify.Mode, p.Verify.Fraction
		return ok
	}
	report := func(key string, v document.Value) bool {
		on, ok := r.toggle(key, v)
		set.ReportOnly = !on
		return ok
	}
	readers := []keyReader{
		{"mode", mode},
		{"fraction", func(key string, v document.Value) bool {
			_, ok := r.fraction(key, v)
			return ok && mode(key, v)
		}},
		{"ops", into(&set.Ops, r.patterns)},
		{"quarantine", report},
	}
	if v.Kind() != document.KindMap {
		return mode(key, v)
	}
	before := len(r.faults)
	read := r.mapping(v, key, readers)
	given := func(name string) bool { return slices.ContainsFunc(read, func(e Entry) bool { return e.Key == name }) }
	if len(r.faults) == before && given("mode") && given("fraction") {
		r.fail(v.Origin(), key, "given mode and fraction, want one of them")
	}
	return len(r.faults) == before
}

// verified reads when calls are verified: a word, a number or a switch, of which only off has a
// meaning.
func (r *reader) verified(key string, v document.Value, p *oppolicy.Policy) bool {
	if _, ok := number(v); ok {
		x, ok := r.fraction(key, v)
		return ok && r.accept(key, v, func(_, source string) error { return p.SetVerify(strconv.FormatFloat(x, 'g', -1, 64), source) })
	}
	if on, ok := v.Bool(); ok && !on {
		return r.accept(key, v, func(_, source string) error { return p.SetVerify(oppolicy.VerifyOff.String(), source) })
	}
	if v.Kind() == document.KindString {
		return r.accept(key, v, p.SetVerify)
	}
	r.fail(v.Origin(), key, "given %s, want off, first, sampled, always, a number from 0 to 1, or a mapping with the keys mode, fraction, ops, quarantine", v.Describe())
	return false
}

// maxFailures is more than is sensible for any impl.
const maxFailures = 1_000_000

func (r *reader) failures(key string, v document.Value) (int, bool) {
	n, ok := v.Int64()
	if !ok || n < 1 || n > maxFailures {
		r.fail(v.Origin(), key, "given %s, want a number from 1 to %d", v.Describe(), maxFailures)
		return 0, false
	}
	return int(n), true
}

func (r *reader) fraction(key string, v document.Value) (float64, bool) {
	x, ok := number(v)
	if !ok || !(x >= 0 && x <= 1) {
		r.fail(v.Origin(), key, "given %s, want a number from 0 to 1", v.Describe())
		return 0, false
	}
	return x, true
}

// maxTime bounds the times of a policy; longer ones are mistakes.
const maxTime = 365 * 24 * time.Hour

// duration reads a text with units, or a number of seconds.
func (r *reader) duration(key string, v document.Value) (time.Duration, bool) {
	d, ok := time.Duration(0), false
	if v.Kind() == document.KindString {
		var err error
		d, err = time.ParseDuration(strings.TrimSpace(v.Text()))
		ok = err == nil
	}
	if seconds, isNumber := number(v); isNumber && seconds > 0 && seconds <= maxTime.Seconds() {
		d, ok = time.Duration(seconds*float64(time.Second)), true
	}
	if !ok || d <= 0 || d > maxTime {
		r.fail(v.Origin(), key, "given %s, want a time above 0 and up to %v, such as 30s, 1m30s or a number of seconds", v.Describe(), maxTime)
		return 0, false
	}
	return d, true
}

// patterns reads names and patterns of ops from a list, or from one text with commas.
func (r *reader) patterns(key string, v document.Value) ([]string, bool) {
	items, _ := v.List()
	switch v.Kind() {
	case document.KindList:
	case document.KindString:
		items = split(v, ",")
	default:
		r.fail(v.Origin(), key, "given %s, want a list of ops or a text such as generic_gemm,*_bwd", v.Describe())
		return nil, false
	}
	if len(items) == 0 {
		r.fail(v.Origin(), key, "given no op, want %s; leave the key out for all ops", wantPattern)
		return nil, false
	}
	patterns, before := make([]string, len(items)), len(r.faults)
	for i, item := range items {
		patterns[i] = strings.TrimSpace(item.Text())
		if item.Kind() != document.KindString || !isPattern(patterns[i]) {
			r.fail(item.Origin(), fmt.Sprintf("%s[%d]", key, i), "given %s, want %s", item.Describe(), wantPattern)
		}
	}
	return patterns, len(r.faults) == before
}

// exponent matches a number with an exponent that YAML 1.1 reads as text because it has no point or
// sign.
var exponent = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$`)

// number returns the value of an int, a float, or a text such as 1e-2.
func number(v document.Value) (float64, bool) {
	if text, ok := v.Str(); ok && exponent.MatchString(text) {
		x, err := strconv.ParseFloat(text, 64)
		return x, err == nil
	}
	return v.Float64()
}
