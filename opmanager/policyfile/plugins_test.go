package policyfile_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlugins(t *testing.T) {
	sum := strings.Repeat("0123456789ABCDEF", 4)
	lower := strings.ToLower(sum)
	digits := strings.Repeat("1", 64)
	exponent := strings.Repeat("1", 60) + "e123"
	below := policyfile.Plugins{Modules: []string{"below.so"}, Isolate: []string{"*"}, Sources: map[oppolicy.Field]string{"plugin_modules": "below"}}
	tests := []struct {
		name, give string
		want       policyfile.Plugins // without sources
	}{
		{"nothing", "{}", below},
		{"list", "plugin_modules: [ /opt/liba.so , libb.so, libb.so]\n", policyfile.Plugins{Modules: []string{"/opt/liba.so", "libb.so"}, Isolate: below.Isolate}},
		{"text", "plugin_modules: /opt/liba.so, ,libb.so\n", policyfile.Plugins{Modules: []string{"/opt/liba.so", "libb.so"}, Isolate: below.Isolate}},
		{"none", "plugin_modules: []\nplugin_sha256: []\nisolate_plugins: []\n", policyfile.Plugins{Modules: []string{}, SHA256: []string{}, Isolate: []string{}}},
		{"sums", "plugin_sha256: ['" + sum + "', " + lower + "]\n", policyfile.Plugins{Modules: below.Modules, Isolate: below.Isolate, SHA256: []string{lower, lower}}},
		{"sums of digits", "plugin_sha256: [" + digits + ", " + exponent + "]\n", policyfile.Plugins{Modules: below.Modules, Isolate: below.Isolate, SHA256: []string{digits, exponent}}},
		{"isolate all", "isolate_plugins: true\n", policyfile.Plugins{Modules: below.Modules, Isolate: []string{"*"}}},
		{"isolate none", "isolate_plugins: 'off'\n", policyfile.Plugins{Modules: below.Modules}},
		{"isolate some", "isolate_plugins: [liba.so]\n", policyfile.Plugins{Modules: below.Modules, Isolate: []string{"liba.so"}}},
		{"isolate a text", "isolate_plugins: liba.so,libb.so\n", policyfile.Plugins{Modules: below.Modules, Isolate: []string{"liba.so", "libb.so"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := policyfile.Parse(t.Context(), "p.yaml", []byte(tt.give))
			require.NoError(t, err)
			got := o.ApplyPlugins(below)
			for _, field := range []oppolicy.Field{policyfile.FieldPluginModules, policyfile.FieldPluginSHA256, policyfile.FieldIsolatePlugins} {
				if strings.Contains(tt.give, string(field)) {
					assert.Contains(t, got.Source(field), "p.yaml:")
				}
			}
			got.Sources = nil
			tt.want.Sources = nil
			assert.Equal(t, tt.want, got)
			assert.Equal(t, map[oppolicy.Field]string{"plugin_modules": "below"}, below.Sources, "the one below is as it was")
		})
	}
	assert.Equal(t, below, (*policyfile.Layer)(nil).ApplyPlugins(below))
	assert.Equal(t, "default", below.Source(policyfile.FieldPluginSHA256))
}

func TestPluginErrors(t *testing.T) {
	tests := []struct{ name, give, at, want string }{
		{"modules of another type", "plugin_modules: 3\n", "1:17", "plugin_modules: given int 3, want a list of libraries"},
		{"no modules", "plugin_modules:\n", "1:16", "given null, want a list of libraries, such as [/opt/acme/libacme_ops.so]; write [] for none"},
		{"blank modules", "plugin_modules: ' , '\n", "1:17", "no plugin between the commas"},
		{"module of another type", "plugin_modules: [a.so, 7]\n", "1:24", "plugin_modules[1]: given int 7, want one library"},
		{"blank module", "plugin_modules: [' ']\n", "1:18", "want one library"},
		{"two modules in one", "plugin_modules: ['a.so,b.so']\n", "1:18", "has a comma inside"},
		{"sums of another type", "plugin_sha256: abc\n", "1:16", `given string "abc", want a list of checksums`},
		{"short checksum", "plugin_sha256: [abcd]\n", "1:17", `plugin_sha256[0]: given string "abcd": it is not a SHA-256 checksum`},
		{"no hexadecimal digits", "plugin_sha256: [" + strings.Repeat("x", 64) + "]\n", "1:17", "is not a SHA-256 checksum"},
		{"isolation of another type", "isolate_plugins: {a: b}\n", "1:18", "given a mapping of 1, want a list of libraries"},
		{"number as switch", "isolate_plugins: 2\n", "1:18", `"2" is not a switch`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := policyfile.Parse(t.Context(), "p.yaml", []byte(tt.give))
			assert.Nil(t, o)
			require.Len(t, faults(err), 1, "%v", err)
			assert.ErrorContains(t, err, "policy: p.yaml:"+tt.at+": ")
			assert.ErrorContains(t, err, tt.want)
		})
	}
	var p policyfile.Plugins
	require.EqualError(t, p.SetModules(",", "environment TE_FL_PLUGIN_MODULES"),
		`policy: environment TE_FL_PLUGIN_MODULES=",": at 1: no plugin between the commas, want libraries such as ./libacme_ops.so`)
	assert.Empty(t, p)
}
