package policyfile

import (
	"strings"

	"github.com/primus-fl/primus/opmanager"
)

// perOp reads a mapping from patterns of ops to orders of tokens.
func (r *reader) perOp(key string, v Value) bool {
	if v.Type != TypeMapping {
		r.fail(v.Place, key, "given %s, expected a mapping from ops to orders, such as rmsnorm_fwd: vendor:acme|flagos", v.given())
		return false
	}
	rules, before := []opmanager.OpRule{}, len(r.faults)
	for e := range r.entries(v, key) {
		if !isPattern(e.Key) {
			r.fail(e.Place, key, "given %q, expected %s", shorten(e.Key), wantPattern)
			continue
		}
		rules = append(rules, opmanager.OpRule{Pattern: e.Key, Order: r.order(e.Name, e.Value), Source: e.Place.Source()})
	}
	r.policy.PerOp = rules
	return len(r.faults) == before
}

// order reads tokens from a list, or from one text in which | stands between them.
func (r *reader) order(key string, v Value) []opmanager.Token {
	items := v.Items
	switch v.Type {
	case TypeList:
	case TypeString:
		items = v.split("|")
	default:
		r.fail(v.Place, key, "given %s, expected tokens such as vendor:acme|flagos, or a list of them", v.given())
		return nil
	}
	var order []opmanager.Token
	for _, item := range items {
		if item.Type != TypeString || strings.TrimSpace(item.Text) == "" || strings.Contains(item.Text, "|") {
			r.fail(item.Place, key, "given %s, expected one token: flagos, vendor, vendor:NAME, reference or impl:ID", item.given())
			continue
		}
		token, err := opmanager.ParseToken(item.Text)
		if err != nil {
			r.fail(item.Place, key, "given %v", err)
			continue
		}
		order = append(order, token)
	}
	if len(items) == 0 {
		r.fail(v.Place, key, "given no token, expected flagos, vendor, vendor:NAME, reference or impl:ID")
	}
	return order
}

// wantPattern says what isPattern accepts.
const wantPattern = "the name of an op or a pattern such as *_bwd"

func isPattern(name string) bool { return name != "" && !strings.ContainsAny(name, " \t\r\n|,:;=") }

// split returns the parts of a text between separators of one byte, each with its
// place. Blank parts are left out, as they are in the variables.
func (v Value) split(separator string) []Value {
	var parts []Value
	start := 0
	for part := range strings.SplitSeq(v.Text, separator) {
		if strings.TrimSpace(part) != "" {
			parts = append(parts, Value{Place: v.at(start), Type: TypeString, Text: part})
		}
		start += len(part) + 1
	}
	return parts
}
