package policyfile_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const whole = `# the fleet's policy
prefer: Vendor
strict: yes
allow_vendors: [Acme, nvidia]
deny_vendors: "amd, ascend"
per_op:
  rmsnorm_fwd: vendor:Acme | default
  '*_bwd':
    - impl:reference.go
    - flagos
protect_in_place: 1
rules:
  - layers: 0-3, 7
    phase: Backward
    prefer: reference
    deny_vendors: acme
  - {layers: [9, 11-12], allow_vendors: [], per_op: {'*_fwd': [flagos]}}
quarantine: {enabled: yes, failures: 5, window: 90, backoff: 1m30s}
verify:
  fraction: 1e-2
  ops: generic_gemm, *_bwd
  quarantine: on
`

// W8: rules for layers and phases, in a file.
func TestParse(t *testing.T) {
	o, err := policyfile.Parse(t.Context(), "p.yaml", []byte(whole))
	require.NoError(t, err)
	got := o.Policy
	assert.EqualExportedValues(t, oppolicy.Policy{
		Prefer: opregistry.KindVendor, Strict: true,
		Allow: []string{"acme", "nvidia"}, Deny: []string{"amd", "ascend"},
		PerOp: []oppolicy.OpRule{
			{Pattern: "rmsnorm_fwd", Source: "p.yaml:7", Order: []oppolicy.Token{{Kind: opregistry.KindVendor, Vendor: "acme"}, {Kind: opregistry.KindFlagos}}},
			{Pattern: "*_bwd", Source: "p.yaml:8", Order: []oppolicy.Token{{Impl: "reference.go"}, {Kind: opregistry.KindFlagos}}},
		},
		ProtectInPlace: true,
		Rules: []oppolicy.Rule{
			{Layers: []oppolicy.LayerRange{{First: 0, Last: 3}, {First: 7, Last: 7}}, Phase: oppolicy.PhaseBackward,
				Prefer: opregistry.KindReference, Deny: []string{"acme"}, Source: "p.yaml:13"},
			{Layers: []oppolicy.LayerRange{{First: 9, Last: 9}, {First: 11, Last: 12}}, Allow: []string{}, Source: "p.yaml:17",
				PerOp: []oppolicy.OpRule{{Pattern: "*_fwd", Source: "p.yaml:17", Order: []oppolicy.Token{{Kind: opregistry.KindFlagos}}}}},
		},
		Quarantine: oppolicy.Quarantine{Failures: 5, Window: 90 * time.Second, Backoff: 90 * time.Second},
		Verify:     oppolicy.Verify{Fraction: 0.01, Ops: []string{"generic_gemm", "*_bwd"}},
		Sources: map[oppolicy.Field]string{
			oppolicy.FieldPrefer: "p.yaml:2", oppolicy.FieldStrict: "p.yaml:3", oppolicy.FieldAllow: "p.yaml:4",
			oppolicy.FieldDeny: "p.yaml:5", oppolicy.FieldPerOp: "p.yaml:6", oppolicy.FieldProtect: "p.yaml:11",
			oppolicy.FieldRules: "p.yaml:12", oppolicy.FieldQuarantine: "p.yaml:18", oppolicy.FieldVerify: "p.yaml:19",
		},
	}, got)
}

func TestLayerChangesWhatIsGivenOnly(t *testing.T) {
	base, err := policyfile.Parse(t.Context(), "base.yaml", []byte(whole))
	require.NoError(t, err)
	below := base.Policy.Over(oppolicy.Default())
	want := base.Policy.Over(oppolicy.Default())

	empty, err := policyfile.Parse(t.Context(), "p.yaml", []byte("{}"))
	require.NoError(t, err)
	assert.Equal(t, want, empty.Policy.Over(below))

	off, err := policyfile.Parse(t.Context(), "p.yaml", []byte("strict: false\nallow_vendors: []\ndeny_vendors: []\nper_op: {}\nprotect_in_place: off\n"+
		"rules: []\nquarantine: off\nverify: 0\n"))
	require.NoError(t, err)
	got := off.Policy.Over(below)
	assert.False(t, got.Strict)
	assert.False(t, got.ProtectInPlace)
	assert.Empty(t, got.PerOp)
	assert.Empty(t, got.Deny)
	assert.Empty(t, got.Rules)
	assert.Equal(t, oppolicy.Quarantine{Disabled: true}, got.Quarantine, "settings are one value")
	assert.Equal(t, oppolicy.Verify{Mode: oppolicy.VerifyOff}, got.Verify)
	assert.NotNil(t, got.Allow, "an empty list allows none")
	assert.Empty(t, got.Allow)
	assert.Equal(t, opregistry.KindVendor, got.Prefer)
	assert.Equal(t, "base.yaml:2", got.Sources[oppolicy.FieldPrefer])
	assert.Equal(t, "p.yaml:1", got.Sources[oppolicy.FieldStrict])
	assert.Equal(t, want, below, "the policy below is as it was")
}

func TestErrors(t *testing.T) {
	tests := []struct{ name, give, at, want string }{
		{"empty", "", "", "file is empty; write {}"},
		{"only a comment", "# nothing\n", "", "file is empty"},
		{"no mapping", "- a\n", "1:1", "given a list of 1, want a mapping with the keys prefer, strict"},
		{"scalar", "vendor\n", "1:1", `given string "vendor", want a mapping`},
		{"null", "~\n", "", "file is empty"},
		{"syntax", "strict: 1\nprefer: [a\nper_op: 1\n", "2", "invalid YAML: "},
		{"character", "strict: 1\nprefer: `a\n", "2", "invalid YAML: "},
		{"second document", "prefer: vendor\n---\nstrict: 1\n", "2:1", "second document, want a single one"},
		{"unknown key", "\nprefr: vendor\n", "2:1", `unknown key "prefr", want one of prefer, strict, allow_vendors, deny_vendors, deterministic, per_op, protect_in_place, cross_device, rules, quarantine, verify, canary, plugin_modules, plugin_sha256, isolate_plugins; did you mean "prefer"?`},
		{"hyphen", "deny-vendors: acme\n", "1:1", `did you mean "deny_vendors"?`},
		{"twice", "strict: 1\nstrict: 0\n", "2:1", "strict is given twice, first as strict at p.yaml:1:1; keep one"},
		{"unknown kind", "prefer:  vendro\n", "1:10", `given string "vendro": unknown kind "vendro", want flagos, vendor, reference or tuned; did you mean "vendor"?`},
		{"kind of another type", "prefer: 1\n", "1:9", "given int 1, want flagos, vendor, reference or tuned"},
		{"kind in a list", "prefer: [vendor]\n", "1:9", "given a list of 1, want flagos"},
		{"no kind", "prefer:\n", "1:8", "given null, want flagos"},
		{"unknown switch", "strict: maybe\n", "1:9", `"maybe" is not a switch, want 1, true`},
		{"number as switch", "strict: 2\n", "1:9", `"2" is not a switch`},
		{"unknown cross_device", "cross_device: cpy\n", "1:15", `unknown word "cpy", want copy or error; did you mean "copy"?`},
		{"number as cross_device", "cross_device: 1\n", "1:15", "given int 1, want copy or error"},
		{"float as switch", "protect_in_place: 1.0\n", "1:19", "given float 1.0, want true or false"},
		{"mapping as switch", "strict: {a: true}\n", "1:9", "given a mapping of 1, want true or false"},
		{"vendors of another type", "allow_vendors: 3\n", "1:16", "given int 3, want a list of vendors"},
		{"no vendors", "allow_vendors:\n", "1:15", "given null, want a list of vendors or a text such as acme,nvidia; write [] for none"},
		{"blank vendors", "deny_vendors: ''\n", "1:15", "given an empty text, want names of vendors; write [] for none"},
		{"only commas", "deny_vendors: ', ,'\n", "1:15", "no vendor between the commas"},
		{"second vendor of a text", "deny_vendors: acme,a;b\n", "1:20", `vendor "a;b" contains ';'`},
		{"vendor of another type", "allow_vendors: [acme, 7]\n", "1:23", "allow_vendors[1]: given int 7, want the name of one vendor"},
		{"two vendors in one", "allow_vendors:\n  - acme\n  - a,b\n", "3:5", `given string "a,b", want the name of one vendor`},
		{"kind as vendor", "allow_vendors: [flagos]\n", "1:17", `"flagos" is a kind of impl, not a vendor`},
		{"orders of another type", "per_op: rmsnorm_fwd=vendor\n", "1:9", "want a mapping from ops to orders"},
		{"name of an op", "per_op:\n  'a b': vendor\n", "2:3", `given "a b", want the name of an op or a pattern`},
		{"op twice", "per_op:\n  a: vendor\n  a: flagos\n", "3:3", "per_op.a is given twice, first as per_op.a at p.yaml:2:3"},
		{"unknown token", "per_op:\n  a: vendor|flags\n", "2:13", `per_op.a: given unknown token "flags": want flagos, vendor, vendor:NAME, reference, tuned or impl:ID; did you mean "flagos"?`},
		{"unknown token in a list", "per_op:\n  a:\n    - vendor\n    - 'impl:'\n", "4:7", `token "impl:": want impl:ID`},
		{"two tokens in one", "per_op: {a: [vendor|flagos]}\n", "1:14", `given string "vendor|flagos", want one token`},
		{"token of another type", "per_op: {a: [1]}\n", "1:14", "given int 1, want one token"},
		{"order of another type", "per_op: {a: true}\n", "1:13", "given bool true, want tokens"},
		{"no token", "per_op: {a: ' | '}\n", "1:13", "given no token, want flagos"},
		{"empty order", "per_op: {a: []}\n", "1:13", "given no token"},
		{"rules of another type", "rules: {layers: 1}\n", "1:8", "given a mapping of 1, want a list of rules, each a mapping with layers or phase; write [] for none"},
		{"no rules", "rules:\n", "1:7", "given null, want a list of rules"},
		{"rule of another type", "rules: [x]\n", "1:9", `rules[0]: given string "x", want a mapping with the keys layers, phase, prefer, allow_vendors, deny_vendors, per_op`},
		{"rule for everything", "rules:\n  - prefer: vendor\n", "2:5", "rules[0]: given neither layers nor phase, want at least one; write values for all layers and phases outside of rules"},
		{"rule that changes nothing", "rules:\n  - layers: 1\n    deny_vendors: []\n    per_op: {}\n", "2:5", "rules[0]: given a rule that changes nothing, want one of prefer, allow_vendors, deny_vendors, per_op in it"},
		{"key of a rule", "rules:\n  - layer: 1\n    phase: forward\n    prefer: vendor\n", "2:5", `rules[0]: unknown key "layer", want one of layers, phase, prefer, allow_vendors, deny_vendors, per_op; did you mean "layers"?`},
		{"key of a policy in a rule", "rules: [{layers: 1, strict: true, prefer: vendor}]\n", "1:21", `rules[0]: unknown key "strict"`},
		{"key of a rule twice", "rules:\n- layers: 1\n  layers: 2\n  prefer: vendor\n", "3:3", "rules[0].layers is given twice, first as rules[0].layers at p.yaml:2:3"},
		{"second rule", "rules:\n- {layers: 1, prefer: vendor}\n- {phase: backward, prefer: vendro}\n", "3:29", `rules[1].prefer: given string "vendro": unknown kind`},
		{"vendor in a rule", "rules: [{layers: 1, deny_vendors: [a, b;c]}]\n", "1:39", `rules[0].deny_vendors[1]: given string "b;c": vendor "b;c" contains ';'`},
		{"token in a rule", "rules: [{layers: 1, per_op: {a: [vendor, flags]}}]\n", "1:42", `rules[0].per_op.a: given unknown token "flags"`},
		{"no layers", "rules: [{layers: [], prefer: vendor}]\n", "1:18", "rules[0].layers: given no layer, want a number counted from 0, a range such as 0-3, or a list of them"},
		{"null as layers", "rules: [{layers: , prefer: vendor}]\n", "1:18", "rules[0].layers: given null, want a number counted from 0"},
		{"layers of another type", "rules: [{layers: 1.5, prefer: vendor}]\n", "1:18", "rules[0].layers: given float 1.5, want a number counted from 0, or a range such as 0-3"},
		{"layer below 0", "rules: [{layers: -1, prefer: vendor}]\n", "1:18", `rules[0].layers: given int -1: "-1" is not a layer`},
		{"second layer", "rules: [{layers: 0-3;x, prefer: vendor}]\n", "1:18", `"0-3;x" is not a layer, want a number counted from 0 or a range such as 0-3`},
		{"backward range", "rules:\n- layers: 1,7-3\n  prefer: vendor\n", "2:13", `range "7-3" ends before it begins, want 3-7`},
		{"layer of a list", "rules: [{layers: [1, x], prefer: vendor}]\n", "1:22", `rules[0].layers[1]: given string "x": "x" is not a layer`},
		{"layers in one", "rules: [{layers: ['1,2'], prefer: vendor}]\n", "1:19", `rules[0].layers[0]: given string "1,2", want one number or range`},
		{"unknown phase", "rules: [{phase: backwards, prefer: vendor}]\n", "1:17", `rules[0].phase: given string "backwards": unknown phase "backwards", want forward or backward; did you mean "backward"?`},
		{"phase of another type", "rules: [{phase: 1, prefer: vendor}]\n", "1:17", "given int 1, want forward or backward"},
		{"no quarantine", "quarantine:\n", "1:12", "given null, want on, off or a mapping with the keys enabled, failures, window, backoff"},
		{"quarantine that is no switch", "quarantine: 5\n", "1:13", `quarantine: given int 5: "5" is not a switch`},
		{"key of quarantine", "quarantine: {failure: 3}\n", "1:14", `quarantine: unknown key "failure", want one of enabled, failures, window, backoff; did you mean "failures"?`},
		{"enabled", "quarantine: {enabled: maybe}\n", "1:23", `quarantine.enabled: given string "maybe": "maybe" is not a switch`},
		{"no failures", "quarantine: {failures: 0}\n", "1:24", "quarantine.failures: given int 0, want a number from 1 to 1000000"},
		{"failures below 0", "quarantine: {failures: -3}\n", "1:24", "given int -3, want"},
		{"half a failure", "quarantine: {failures: 2.5}\n", "1:24", "given float 2.5, want"},
		{"more failures than numbers", "quarantine: {failures: 9223372036854775808}\n", "1:24", "given int 9223372036854775808, want"},
		{"failures in words", "quarantine: {failures: three}\n", "1:24", `given string "three", want a number`},
		{"time without unit", "quarantine: {window: '30'}\n", "1:22", `quarantine.window: given string "30", want a time above 0 and up to 8760h0m0s, such as 30s, 1m30s or a number of seconds`},
		{"no time", "quarantine: {backoff: 0s}\n", "1:23", `quarantine.backoff: given string "0s", want a time above 0`},
		{"time below 0", "quarantine: {backoff: -30}\n", "1:23", "given int -30, want a time above 0"},
		{"less than a nanosecond", "quarantine: {backoff: 1e-10}\n", "1:23", "given string \"1e-10\", want a time above 0"},
		{"endless", "quarantine: {backoff: .inf}\n", "1:23", "given float .inf, want a time above 0"},
		{"more than a year", "quarantine: {backoff: 8761h}\n", "1:23", `given string "8761h", want a time above 0 and up to`},
		{"more seconds than a year has", "quarantine: {backoff: 1e300}\n", "1:23", "given string \"1e300\", want a time above 0 and up to"},
		{"time of another type", "quarantine: {backoff: true}\n", "1:23", "given bool true, want a time"},
		{"verify as a switch", "verify: on\n", "1:9", `given bool on, want off, first, sampled, always, a number from 0 to 1, or a mapping with the keys mode, fraction, ops, quarantine`},
		{"verify more than all", "verify: 2\n", "1:9", "verify: given int 2, want a number from 0 to 1"},
		{"verify below 0", "verify: -0.1\n", "1:9", "given float -0.1, want a number from 0 to 1"},
		{"no number", "verify: .nan\n", "1:9", "given float .nan, want a number from 0 to 1"},
		{"percent", "verify: {fraction: 1%}\n", "1:20", `verify.fraction: given string "1%", want a number from 0 to 1`},
		{"mode of verify", "verify: frist\n", "1:9", `given "frist", want off, first, sampled, always, or the part of the calls as a number from 0 to 1; did you mean "first"?`},
		{"mode and fraction", "verify: {mode: first, fraction: 0.1}\n", "1:9", "verify: given mode and fraction, want one of them"},
		{"key of verify", "verify: {fraction: 1, op: a}\n", "1:23", `verify: unknown key "op", want one of mode, fraction, ops, quarantine; did you mean "ops"?`},
		{"no ops", "verify: {fraction: 1, ops: []}\n", "1:28", "verify.ops: given no op, want the name of an op or a pattern such as *_bwd; leave the key out for all ops"},
		{"only commas as ops", "verify: {fraction: 1, ops: ', ,'}\n", "1:28", "verify.ops: given no op"},
		{"ops of another type", "verify: {fraction: 1, ops: {a: 1}}\n", "1:28", "given a mapping of 1, want a list of ops or a text such as generic_gemm,*_bwd"},
		{"canary of all ops", "canary: {'*': {impl: vendor:acme, fraction: 0.1}}\n", "1:10", `canary: given "*", want the name of one op, without *`},
		{"canary without a fraction", "canary: {a: {impl: vendor:acme}}\n", "1:13", "canary.a: fraction is missing"},
		{"canary as a text", "canary: {a: vendor:acme}\n", "1:13", `given string "vendor:acme", want a mapping with the keys impl, fraction, calls`},
		{"canary of a kind", "canary: {a: {impl: vendor, fraction: 0.1}}\n", "1:20", `canary.a.impl: given "vendor", want one impl: vendor:NAME or impl:ID`},
		{"canary below 0", "canary: {a: {impl: vendor:acme, fraction: -0.1}}\n", "1:43", "given float -0.1, want a number above 0 and at most 0.5"},
		{"canary above a half", "canary: {a: {impl: vendor:acme, fraction: 1.5}}\n", "1:43", "given float 1.5, want a number above 0 and at most 0.5"},
		{"canary of NaN", "canary: {a: {impl: vendor:acme, fraction: .nan}}\n", "1:43", "given float .nan, want a number above 0 and at most 0.5"},
		{"canary of words", "canary: {a: {impl: vendor:acme, fraction: few}}\n", "1:43", `given string "few", want a number above 0`},
		{"canary of no calls", "canary: {a: {impl: vendor:acme, fraction: 0.1, calls: 0}}\n", "1:55", "given int 0, want a number from 1 to 1000000"},
		{"canary as a list", "canary: [a]\n", "1:9", "want a mapping from ops to impls"},
		{"op of another type", "verify: {fraction: 1, ops: [a, 7]}\n", "1:32", "verify.ops[1]: given int 7, want the name of an op"},
		{"two ops in one", "verify:\n  fraction: 1\n  ops: a,b;c\n", "3:10", `verify.ops[1]: given string "b;c", want the name of an op`},
		{"verify.quarantine", "verify: {fraction: 1, quarantine: 3}\n", "1:35", `verify.quarantine: given int 3: "3" is not a switch`},
		{"anchor in itself", "per_op: &a {x: *a}\n", "1:16", "anchor \"a\" contains itself"},
		{"date", "prefer: 2024-01-01\n", "1:9", "given date 2024-01-01, want flagos"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := policyfile.Parse(t.Context(), "p.yaml", []byte(tt.give))
			assert.Nil(t, o)
			require.Len(t, faults(err), 1, "%v", err)
			at := "policy: p.yaml"
			if tt.at != "" {
				at += ":" + tt.at
			}
			assert.ErrorContains(t, err, at+": ")
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestScopesAndSettings(t *testing.T) {
	layers := func(ranges ...int) oppolicy.Policy {
		rule := oppolicy.Rule{Prefer: opregistry.KindVendor, Source: "p.yaml:1"}
		for i := 0; i < len(ranges); i += 2 {
			rule.Layers = append(rule.Layers, oppolicy.LayerRange{First: ranges[i], Last: ranges[i+1]})
		}
		return oppolicy.Policy{Rules: []oppolicy.Rule{rule}}
	}
	window := func(d time.Duration) oppolicy.Policy {
		return oppolicy.Policy{Quarantine: oppolicy.Quarantine{Window: d}}
	}
	fraction := func(x float64) oppolicy.Policy {
		return oppolicy.Policy{Verify: oppolicy.Verify{Fraction: x}}
	}
	tests := map[string]oppolicy.Policy{
		"rules: [{layers: 7, prefer: vendor}]":              layers(7, 7),
		"rules: [{layers: '7', prefer: vendor}]":            layers(7, 7),
		"rules: [{layers: ' 3 - 5 , 9', prefer: vendor}]":   layers(3, 5, 9, 9),
		"rules: [{layers: [1, 3-5, '9'], prefer: vendor}]":  layers(1, 1, 3, 5, 9, 9),
		"rules: [{phase: ' FORWARD ', allow_vendors: '*'}]": {Rules: []oppolicy.Rule{{Phase: oppolicy.PhaseForward, Allow: []string{"*"}, Source: "p.yaml:1"}}},
		"quarantine: on":                             {},
		"quarantine: {}":                             {},
		"quarantine: false":                          {Quarantine: oppolicy.Quarantine{Disabled: true}},
		"quarantine: 0":                              {Quarantine: oppolicy.Quarantine{Disabled: true}},
		"quarantine: {enabled: no}":                  {Quarantine: oppolicy.Quarantine{Disabled: true}},
		"quarantine: {failures: 0x10}":               {Quarantine: oppolicy.Quarantine{Failures: 16}},
		"quarantine: {window: 30s}":                  window(30 * time.Second),
		"quarantine: {window: ' 1h0.5m ' }":          window(time.Hour + 30*time.Second),
		"quarantine: {window: 30}":                   window(30 * time.Second),
		"quarantine: {window: 1e2}":                  window(100 * time.Second),
		"quarantine: {window: 0.25}":                 window(250 * time.Millisecond),
		"quarantine: {window: 31536000}":             window(365 * 24 * time.Hour),
		"verify: 1e-2":                               fraction(0.01),
		"verify: 0.25":                               fraction(0.25),
		"verify: 1":                                  fraction(1),
		"verify: .5":                                 fraction(0.5),
		"verify: {fraction: 0}":                      {Verify: oppolicy.Verify{Mode: oppolicy.VerifyOff}},
		"verify: off":                                {Verify: oppolicy.Verify{Mode: oppolicy.VerifyOff}},
		"verify: ' Off '":                            {Verify: oppolicy.Verify{Mode: oppolicy.VerifyOff}},
		"verify: first":                              {Verify: oppolicy.Verify{Mode: oppolicy.VerifyFirst}},
		"verify: sampled":                            {},
		"verify: ALWAYS":                             fraction(1),
		"verify: {}":                                 {},
		"verify: {mode: 0.5, quarantine: off}":       {Verify: oppolicy.Verify{Fraction: 0.5, ReportOnly: true}},
		"verify: {mode: first, ops: '*_bwd'}":        {Verify: oppolicy.Verify{Mode: oppolicy.VerifyFirst, Ops: []string{"*_bwd"}}},
		"verify: {fraction: 1, ops: [a, ' *_bwd ']}": {Verify: oppolicy.Verify{Fraction: 1, Ops: []string{"a", "*_bwd"}}},
		"verify: {fraction: 1, ops: ' a ,, b '}":     {Verify: oppolicy.Verify{Fraction: 1, Ops: []string{"a", "b"}}},
	}
	for give, want := range tests {
		t.Run(give, func(t *testing.T) {
			o, err := policyfile.Parse(t.Context(), "p.yaml", []byte(give))
			require.NoError(t, err)
			got := o.Policy
			got.Sources, want.Prefer = nil, opregistry.KindFlagos
			assert.EqualExportedValues(t, want, got)
		})
	}
}

func TestErrorsAreReportedTogether(t *testing.T) {
	_, err := policyfile.Parse(t.Context(), "p.yaml", []byte("prefer: x\nstrict: x\nwhat: 1\nallow_vendors: [1, 2]\nper_op: {a: x|y, b: []}\n"))
	assert.Len(t, faults(err), 8)
}

// A few aliases may stand for very much; reading stops before that is spread out.
func TestAliasesAreBounded(t *testing.T) {
	text := "prefer: &a [" + strings.Repeat("x,", 50_000) + "]\nstrict: [" + strings.Repeat("*a,", 50_000) + "]\n"
	_, err := policyfile.Parse(t.Context(), "p.yaml", []byte(text))
	assert.ErrorContains(t, err, "more than 131072 values")
}

func TestMergeKeys(t *testing.T) {
	o, err := policyfile.Parse(t.Context(), "p.yaml", []byte("rules:\n- &low {layers: 0-3, prefer: vendor}\n- {<<: *low, layers: 4-7}\n"))
	require.NoError(t, err)
	rules := o.Policy.Rules
	require.Len(t, rules, 2)
	assert.Equal(t, opregistry.KindVendor, rules[1].Prefer)
	assert.Equal(t, []oppolicy.LayerRange{{First: 4, Last: 7}}, rules[1].Layers)
}

// A source is the place of the key, where an alias makes that another one than the place of the
// value.
func TestAliases(t *testing.T) {
	o, err := policyfile.Parse(t.Context(), "p.yaml", []byte("allow_vendors: &v [acme]\ndeny_vendors: *v\n"))
	require.NoError(t, err)
	p := o.Policy
	assert.Equal(t, []string{"acme"}, p.Deny)
	assert.Equal(t, "p.yaml:2", p.Sources[oppolicy.FieldDeny])
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "none.yaml")
	_, err := policyfile.Read(t.Context(), missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, missing+": no such file or directory; want a YAML file")
	t.Chdir(dir)
	_, err = policyfile.Read(t.Context(), "none.yaml")
	require.ErrorContains(t, err, "no such file or directory (tried "+missing+"); want a YAML file")
	_, err = policyfile.Read(t.Context(), dir)
	require.ErrorContains(t, err, "want a regular file")
	large := filepath.Join(dir, "large.yaml")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20+1), 0o600))
	_, err = policyfile.Read(t.Context(), large)
	assert.ErrorContains(t, err, "takes more than 1048576 bytes")
	require.NoError(t, os.WriteFile(large, []byte("prefer: vendor\n"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = policyfile.Read(ctx, large)
	assert.ErrorIs(t, err, context.Canceled)
}

// schemaObject is a part of the schema that describes a mapping.
type schemaObject struct {
	Additional any                     `json:"additionalProperties"`
	Properties map[string]schemaObject `json:"properties"`
	OneOf      []schemaObject          `json:"oneOf"`
	Defs       map[string]schemaObject `json:"$defs"`
}

func TestSchemaHasTheKeysOfTheParser(t *testing.T) {
	var schema schemaObject
	require.NoError(t, json.Unmarshal([]byte(policyfile.Schema()), &schema))
	last := func(all []schemaObject) schemaObject { return all[len(all)-1] }
	tests := []struct {
		name, give string // a document with an unknown key in this place
		part       schemaObject
	}{
		{"document", "?: 1\n", schema},
		{"rule", "rules: [{?: 1, layers: 1}]\n", schema.Defs["rule"]},
		{"quarantine", "quarantine: {?: 1}\n", last(schema.Properties["quarantine"].OneOf)},
		{"verify", "verify: {?: 1, fraction: 1}\n", last(schema.Properties["verify"].OneOf)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var keys []string
			for key := range tt.part.Properties {
				keys = append(keys, key)
			}
			assert.Equal(t, false, tt.part.Additional)
			_, err := policyfile.Parse(t.Context(), "p.yaml", []byte(strings.Replace(tt.give, "?", "'?'", 1)))
			require.Error(t, err)
			_, expected, ok := strings.Cut(err.Error(), `unknown key "?", want one of `)
			require.True(t, ok, "%v", err)
			assert.ElementsMatch(t, strings.Split(expected, ", "), keys)
		})
	}
	assert.Len(t, schema.Properties, len(policyfile.Keys()))
}

func FuzzPolicyFile(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("per_op: &a {x: *a, y: [*a]}\n<<: *a\n"))
	f.Add([]byte("rules: [{layers: 0-3}, {phase: x, per_op: {a: [[b]]}}]\nquarantine: {window: 1e99, failures: 1_0}\nverify: {fraction: -.inf, ops: ',*'}\n"))
	f.Add([]byte("quarantine: &q {window: 0x1e, enabled: *q}\nverify: !!float 1\nrules: *q\n"))
	f.Add([]byte("\xff\xfeprefer: \x00"))
	f.Add([]byte("? [a]\n: b\n---\n!!binary x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o *policyfile.Layer
		var err error
		primustest.Cost(t, len(data), 20_000, func() { o, err = policyfile.Parse(t.Context(), "p.yaml", data) })
		if err == nil {
			p := o.Policy
			for _, rule := range p.PerOp {
				assert.NotEmpty(t, rule.Order)
				assert.Regexp(t, `^p\.yaml:\d+$`, rule.Source)
			}
			for _, rule := range p.Rules {
				assert.True(t, len(rule.Layers) > 0 || rule.Phase != oppolicy.PhaseUnspecified)
				assert.Regexp(t, `^p\.yaml:\d+$`, rule.Source)
			}
			assert.GreaterOrEqual(t, p.Quarantine.Failures, 0)
			assert.GreaterOrEqual(t, min(p.Quarantine.Window, p.Quarantine.Backoff), time.Duration(0))
			assert.True(t, p.Verify.Fraction >= 0 && p.Verify.Fraction <= 1)
			_, err := json.Marshal(p)
			require.NoError(t, err)
			return
		}
		assert.Nil(t, o)
		for _, fault := range faults(err) {
			var e *document.Error
			require.ErrorAs(t, fault, &e)
			assert.Equal(t, "p.yaml", e.Origin.File)
			assert.Less(t, len(fault.Error()), 4096)
		}
	})
}

func faults(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}
