package policyfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/opmanager"
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
`

func TestParse(t *testing.T) {
	o, err := policyfile.Parse("p.yaml", []byte(whole))
	require.NoError(t, err)
	got := o.Apply(opmanager.DefaultPolicy())
	assert.Equal(t, opmanager.Policy{
		Prefer: opregistry.KindVendor, Strict: true,
		Allow: []string{"acme", "nvidia"}, Deny: []string{"amd", "ascend"},
		PerOp: []opmanager.OpRule{
			{Pattern: "rmsnorm_fwd", Source: "p.yaml:7", Order: []opmanager.Token{{Kind: opregistry.KindVendor, Vendor: "acme"}, {Kind: opregistry.KindFlagos}}},
			{Pattern: "*_bwd", Source: "p.yaml:8", Order: []opmanager.Token{{Impl: "reference.go"}, {Kind: opregistry.KindFlagos}}},
		},
		ProtectInPlace: true,
		Sources: map[opmanager.Field]string{
			opmanager.FieldPrefer: "p.yaml:2", opmanager.FieldStrict: "p.yaml:3", opmanager.FieldAllow: "p.yaml:4",
			opmanager.FieldDeny: "p.yaml:5", opmanager.FieldPerOp: "p.yaml:6", opmanager.FieldProtect: "p.yaml:11",
		},
	}, got)
}

func TestApplyChangesWhatIsGivenOnly(t *testing.T) {
	base, err := policyfile.Parse("base.yaml", []byte(whole))
	require.NoError(t, err)
	below := base.Apply(opmanager.DefaultPolicy())
	want := base.Apply(opmanager.DefaultPolicy())

	empty, err := policyfile.Parse("p.yaml", []byte("{}"))
	require.NoError(t, err)
	assert.Equal(t, want, empty.Apply(below))
	assert.Equal(t, want, (*policyfile.Overlay)(nil).Apply(below))

	off, err := policyfile.Parse("p.yaml", []byte("strict: false\nallow_vendors: []\ndeny_vendors: []\nper_op: {}\nprotect_in_place: off\n"))
	require.NoError(t, err)
	got := off.Apply(below)
	assert.False(t, got.Strict)
	assert.False(t, got.ProtectInPlace)
	assert.Empty(t, got.PerOp)
	assert.Empty(t, got.Deny)
	assert.NotNil(t, got.Allow, "an empty list allows none")
	assert.Empty(t, got.Allow)
	assert.Equal(t, opregistry.KindVendor, got.Prefer)
	assert.Equal(t, "base.yaml:2", got.Sources[opmanager.FieldPrefer])
	assert.Equal(t, "p.yaml:1", got.Sources[opmanager.FieldStrict])
	assert.Equal(t, want, below, "the policy below is as it was")
}

func TestErrors(t *testing.T) {
	tests := []struct{ name, give, at, want string }{
		{"empty", "", "1:1", "given an empty file, expected a mapping; write {}"},
		{"only a comment", "# nothing\n", "1:1", "empty file"},
		{"no mapping", "- a\n", "1:1", "given a list of 1, expected a mapping with the keys prefer, strict"},
		{"scalar", "vendor\n", "1:1", `given "vendor", expected a mapping`},
		{"null", "~\n", "1:1", "given null, expected a mapping"},
		{"syntax", "strict: 1\nprefer: [a\nper_op: 1\n", "2:1", "expected YAML: "},
		{"character", "strict: 1\nprefer: `a\n", "2:1", "expected YAML: "},
		{"second document", "prefer: vendor\n---\nstrict: 1\n", "2:1", "second document, expected one"},
		{"unknown key", "\nprefr: vendor\n", "2:1", `unknown key "prefr", expected one of prefer, strict, allow_vendors, deny_vendors, per_op, protect_in_place, plugin_modules, plugin_sha256, isolate_plugins; did you mean "prefer"?`},
		{"hyphen", "deny-vendors: acme\n", "1:1", `did you mean "deny_vendors"?`},
		{"merge key", "<<: {prefer: vendor}\n", "1:1", `unknown key "<<"`},
		{"twice", "strict: 1\nstrict: 0\n", "2:1", "strict is given twice, first as strict at p.yaml:1:1; keep one"},
		{"unknown kind", "prefer:  vendro\n", "1:10", `given "vendro": unknown kind "vendro", want flagos, vendor or reference; did you mean "vendor"?`},
		{"kind of another type", "prefer: 1\n", "1:9", "given int 1, expected flagos, vendor or reference"},
		{"kind in a list", "prefer: [vendor]\n", "1:9", "given a list of 1, expected flagos"},
		{"no kind", "prefer:\n", "1:8", "given null, expected flagos"},
		{"unknown switch", "strict: maybe\n", "1:9", `"maybe" is not a switch, want 1, true`},
		{"number as switch", "strict: 2\n", "1:9", `"2" is not a switch`},
		{"float as switch", "protect_in_place: 1.0\n", "1:19", "given float 1.0, expected true or false"},
		{"mapping as switch", "strict: {on: true}\n", "1:9", "given a mapping of 1, expected true or false"},
		{"vendors of another type", "allow_vendors: 3\n", "1:16", "given int 3, expected a list of vendors"},
		{"no vendors", "allow_vendors:\n", "1:15", "given null, expected a list of vendors or a text such as acme,nvidia; write [] for none"},
		{"blank vendors", "deny_vendors: ''\n", "1:15", "given a blank text, expected names of vendors; write [] for none"},
		{"only commas", "deny_vendors: ', ,'\n", "1:15", "no vendor between the commas"},
		{"second vendor of a text", "deny_vendors: acme,a;b\n", "1:20", `vendor "a;b" has a ';' inside`},
		{"vendor of another type", "allow_vendors: [acme, 7]\n", "1:23", "allow_vendors[1]: given int 7, expected the name of one vendor"},
		{"two vendors in one", "allow_vendors:\n  - acme\n  - a,b\n", "3:5", `given "a,b", expected the name of one vendor`},
		{"kind as vendor", "allow_vendors: [flagos]\n", "1:17", `"flagos" is a kind of impl, not a vendor`},
		{"orders of another type", "per_op: rmsnorm_fwd=vendor\n", "1:9", "expected a mapping from ops to orders"},
		{"name of an op", "per_op:\n  'a b': vendor\n", "2:3", `given "a b", expected the name of an op or a pattern`},
		{"op twice", "per_op:\n  a: vendor\n  a: flagos\n", "3:3", "per_op.a is given twice, first as per_op.a at p.yaml:2:3"},
		{"unknown token", "per_op:\n  a: vendor|flags\n", "2:13", `per_op.a: given unknown token "flags": want flagos, vendor, vendor:NAME, reference or impl:ID; did you mean "flagos"?`},
		{"unknown token in a list", "per_op:\n  a:\n    - vendor\n    - 'impl:'\n", "4:7", `token "impl:": want impl:ID`},
		{"two tokens in one", "per_op: {a: [vendor|flagos]}\n", "1:14", `given "vendor|flagos", expected one token`},
		{"token of another type", "per_op: {a: [1]}\n", "1:14", "given int 1, expected one token"},
		{"order of another type", "per_op: {a: true}\n", "1:13", "given bool true, expected tokens"},
		{"no token", "per_op: {a: ' | '}\n", "1:13", "given no token, expected flagos"},
		{"empty order", "per_op: {a: []}\n", "1:13", "given no token"},
		{"anchor in itself", "per_op: &a {x: *a}\n", "1:16", "given a mapping of"},
		{"date", "prefer: 2024-01-01\n", "1:9", "given timestamp 2024-01-01, expected flagos"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := policyfile.Parse("p.yaml", []byte(tt.give))
			assert.Nil(t, o)
			require.Len(t, faults(err), 1, "%v", err)
			assert.ErrorContains(t, err, "policy: p.yaml:"+tt.at+": ")
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestErrorsAreReportedTogether(t *testing.T) {
	_, err := policyfile.Parse("p.yaml", []byte("prefer: x\nstrict: x\nwhat: 1\nallow_vendors: [1, 2]\nper_op: {a: x|y, b: []}\n"))
	assert.Len(t, faults(err), 8)
}

// A few aliases may stand for very much; reading stops before that is spread out.
func TestAliasesAreBounded(t *testing.T) {
	text := "prefer: &a [" + strings.Repeat("x,", 50_000) + "]\nstrict: [" + strings.Repeat("*a,", 50_000) + "]\n"
	_, err := policyfile.Parse("p.yaml", []byte(text))
	assert.ErrorContains(t, err, "more than 100000 values")
}

func TestAliases(t *testing.T) {
	o, err := policyfile.Parse("p.yaml", []byte("allow_vendors: &v [acme]\ndeny_vendors: *v\n"))
	require.NoError(t, err)
	assert.Equal(t, []string{"acme"}, o.Apply(opmanager.DefaultPolicy()).Deny)
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	_, err := policyfile.Read(filepath.Join(dir, "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = policyfile.Read(dir)
	require.ErrorContains(t, err, "expected a regular file")
	large := filepath.Join(dir, "large.yaml")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20+1), 0o600))
	_, err = policyfile.Read(large)
	assert.ErrorContains(t, err, "expected a policy")
}

func TestSchemaHasTheKeysOfTheParser(t *testing.T) {
	var schema struct {
		AdditionalProperties bool           `json:"additionalProperties"`
		Properties           map[string]any `json:"properties"`
	}
	require.NoError(t, json.Unmarshal([]byte(policyfile.Schema()), &schema))
	var keys []string
	for key := range schema.Properties {
		keys = append(keys, key)
	}
	assert.ElementsMatch(t, policyfile.Keys(), keys)
	assert.False(t, schema.AdditionalProperties)
	for _, key := range policyfile.Keys() {
		_, err := policyfile.Parse("p.yaml", []byte(key+": !x y\n"))
		assert.NotContains(t, err.Error(), "unknown key")
	}
}

func FuzzPolicyFile(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("per_op: &a {x: *a, y: [*a]}\n<<: *a\n"))
	f.Add([]byte("\xff\xfeprefer: \x00"))
	f.Add([]byte("? [a]\n: b\n---\n!!binary x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := policyfile.Parse("p.yaml", data)
		if err == nil {
			p := o.Apply(opmanager.DefaultPolicy())
			for _, rule := range p.PerOp {
				assert.NotEmpty(t, rule.Order)
				assert.Regexp(t, `^p\.yaml:\d+$`, rule.Source)
			}
			return
		}
		assert.Nil(t, o)
		for _, fault := range faults(err) {
			var e *policyfile.Error
			require.ErrorAs(t, fault, &e)
			assert.Positive(t, e.Place.Line)
			assert.Positive(t, e.Place.Column)
			assert.Less(t, len(e.Error()), 4096)
		}
	})
}

func faults(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}
