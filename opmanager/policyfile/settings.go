package policyfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// quarantine reads a switch, or a mapping with the settings. Settings that are left
// out are the defaults, whatever the policy below says.
func (r *reader) quarantine(key string, v Value) bool {
	set := &r.policy.Quarantine
	enabled := func(key string, v Value) bool {
		on, ok := r.toggle(key, v)
		set.Disabled = !on
		return ok
	}
	readers := []keyReader{
		{"enabled", enabled},
		{"failures", func(key string, v Value) (ok bool) {
			set.Failures, ok = r.failures(key, v)
			return ok
		}},
		{"window", func(key string, v Value) (ok bool) {
			set.Window, ok = r.duration(key, v)
			return ok
		}},
		{"backoff", func(key string, v Value) (ok bool) {
			set.Backoff, ok = r.duration(key, v)
			return ok
		}},
	}
	switch v.Type {
	case TypeMapping:
		before := len(r.faults)
		r.mapping(v, key, readers)
		return len(r.faults) == before
	case TypeBool, TypeInt, TypeString:
		return enabled(key, v)
	}
	r.fail(v.Place, key, "given %s, expected on, off or a mapping with the keys %s", v.given(), strings.Join(keysOf(readers), ", "))
	return false
}

// verify reads a fraction, or a mapping with the settings.
func (r *reader) verify(key string, v Value) bool {
	set := &r.policy.Verify
	fraction := func(key string, v Value) (ok bool) {
		set.Fraction, ok = r.fraction(key, v)
		return ok
	}
	readers := []keyReader{
		{"fraction", fraction},
		{"ops", func(key string, v Value) (ok bool) {
			set.Ops, ok = r.patterns(key, v)
			return ok
		}},
		{"quarantine", func(key string, v Value) (ok bool) {
			set.Quarantine, ok = r.toggle(key, v)
			return ok
		}},
	}
	switch v.Type {
	case TypeMapping:
		before := len(r.faults)
		read := r.mapping(v, key, readers)
		given := slices.ContainsFunc(read, func(e Entry) bool { return e.Key == "fraction" })
		if len(r.faults) == before && !given {
			r.fail(v.Place, key, "given no fraction, expected the part of the calls to verify, such as fraction: 0.01")
		}
		return len(r.faults) == before
	case TypeInt, TypeFloat:
		return fraction(key, v)
	}
	r.fail(v.Place, key, "given %s, expected a number from 0 to 1 or a mapping with the keys %s; write 0 for none", v.given(), strings.Join(keysOf(readers), ", "))
	return false
}

// mostFailures is more than any impl should be allowed.
const mostFailures = 1_000_000

func (r *reader) failures(key string, v Value) (int, bool) {
	n, ok := v.number()
	if v.Type != TypeInt || !ok || n < 1 || n > mostFailures {
		r.fail(v.Place, key, "given %s, expected a number from 1 to %d", v.given(), mostFailures)
		return 0, false
	}
	return int(n), true
}

func (r *reader) fraction(key string, v Value) (float64, bool) {
	x, ok := v.number()
	if !ok || !(x >= 0 && x <= 1) {
		r.fail(v.Place, key, "given %s, expected a number from 0 to 1", v.given())
		return 0, false
	}
	return x, true
}

// mostTime bounds the times of a policy; longer ones are mistakes.
const mostTime = 365 * 24 * time.Hour

// duration reads a text with units, or a number of seconds.
func (r *reader) duration(key string, v Value) (time.Duration, bool) {
	d, ok := time.Duration(0), false
	if v.Type == TypeString {
		var err error
		d, err = time.ParseDuration(strings.TrimSpace(v.Text))
		ok = err == nil
	} else if seconds, isNumber := v.number(); isNumber && seconds > 0 && seconds <= mostTime.Seconds() {
		d, ok = time.Duration(seconds*float64(time.Second)), true
	}
	if !ok || d <= 0 || d > mostTime {
		r.fail(v.Place, key, "given %s, expected a time above 0 and up to %v, such as 30s, 1m30s or a number of seconds", v.given(), mostTime)
		return 0, false
	}
	return d, true
}

// patterns reads names and patterns of ops from a list, or from one text with commas.
func (r *reader) patterns(key string, v Value) ([]string, bool) {
	items := v.Items
	switch v.Type {
	case TypeList:
	case TypeString:
		items = v.split(",")
	default:
		r.fail(v.Place, key, "given %s, expected a list of ops or a text such as generic_gemm,*_bwd", v.given())
		return nil, false
	}
	if len(items) == 0 {
		r.fail(v.Place, key, "given no op, expected %s; leave the key out for all ops", wantPattern)
		return nil, false
	}
	patterns, before := make([]string, len(items)), len(r.faults)
	for i, item := range items {
		patterns[i] = strings.TrimSpace(item.Text)
		if item.Type != TypeString || !isPattern(patterns[i]) {
			r.fail(item.Place, fmt.Sprintf("%s[%d]", key, i), "given %s, expected %s", item.given(), wantPattern)
		}
	}
	return patterns, len(r.faults) == before
}

// number returns the value of an int or float.
func (v Value) number() (x float64, ok bool) {
	switch v.Type {
	case TypeInt:
		n, err := strconv.ParseInt(v.Text, 0, 64)
		return float64(n), err == nil
	case TypeFloat:
		x, err := strconv.ParseFloat(strings.ReplaceAll(v.Text, "_", ""), 64)
		return x, err == nil
	}
	return 0, false
}
