package policyfile

import (
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// perOp reads a mapping from patterns of ops to orders of tokens.
func (r *reader) perOp(key string, v document.Value) bool {
	if v.Kind() != document.KindMap {
		r.fail(v.Origin(), key, "given %s, want a mapping from ops to orders, such as rmsnorm_fwd: vendor:acme|flagos", v.Describe())
		return false
	}
	rules, before := []oppolicy.OpRule{}, len(r.faults)
	for _, e := range r.entries(v, key) {
		at := e.Value.KeyOrigin()
		if !isPattern(e.Key) {
			r.fail(at, key, "given %q, want %s", document.Shorten(e.Key), wantPattern)
			continue
		}
		rules = append(rules, oppolicy.OpRule{Pattern: e.Key, Order: r.order(e.Name, e.Value), Source: at.Source()})
	}
	r.policy.PerOp = rules
	return len(r.faults) == before
}

// order reads tokens from a list, or from one text in which they are separated by |.
func (r *reader) order(key string, v document.Value) []oppolicy.Token {
	items, _ := v.List()
	switch v.Kind() {
	case document.KindList:
	case document.KindString:
		items = split(v, "|")
	default:
		r.fail(v.Origin(), key, "given %s, want tokens such as vendor:acme|flagos, or a list of them", v.Describe())
		return nil
	}
	var order []oppolicy.Token
	for _, item := range items {
		if item.Kind() != document.KindString || strings.TrimSpace(item.Text()) == "" || strings.Contains(item.Text(), "|") {
			r.fail(item.Origin(), key, "given %s, want one token: flagos, vendor, vendor:NAME, reference, tuned or impl:ID", item.Describe())
			continue
		}
		token, err := oppolicy.ParseToken(item.Text())
		if err != nil {
			r.fail(item.Origin(), key, "given %v", err)
			continue
		}
		order = append(order, token)
	}
	if len(items) == 0 {
		r.fail(v.Origin(), key, "given no token, want flagos, vendor, vendor:NAME, reference, tuned or impl:ID")
	}
	return order
}

// wantPattern describes what isPattern accepts.
const wantPattern = "the name of an op or a pattern such as *_bwd"

func isPattern(name string) bool { return name != "" && !strings.ContainsAny(name, " \t\r\n|,:;=") }

// split returns the parts of a text between separators of one byte, each with its place. Parts that
// are empty or consist of spaces are left out, as in the variables.
func split(v document.Value, separator string) []document.Value {
	var parts []document.Value
	start := 0
	for part := range strings.SplitSeq(v.Text(), separator) {
		if strings.TrimSpace(part) != "" {
			parts = append(parts, document.StringValue(part).At(v.Within(start)))
		}
		start += len(part) + 1
	}
	return parts
}
