package opmanager_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"

	"github.com/primus-fl/primus/internal/primustest"
)

func TestManifest(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		p.Rules = []oppolicy.Rule{{Layers: []oppolicy.LayerRange{{First: 0, Last: 0}}, Prefer: opregistry.KindReference, Source: "p.yaml:3"}}
	}, opmanager.Settings{})
	f.Layer(0)
	f.Layer(5)
	want := f.Manifest()
	require.Len(t, want.Ops, 6, "three ops, with and without the rule")
	assert.Equal(t, opmanager.ManifestOp{Op: "add_one", Impl: "vendor.acme", Source: "test"}, want.Ops[0])
	assert.Equal(t, "reference.go", want.Ops[1].Impl)
	text, err := json.Marshal(want)
	require.NoError(t, err)
	read, err := opmanager.ParseManifest(text)
	require.NoError(t, err)
	assert.Equal(t, want, read)
	require.NoError(t, read.Check(f.Manifest()))

	policy := f.Policy()
	require.NoError(t, policy.SetDeny("acme", "elsewhere"))
	require.NoError(t, policy.SetPerOp("pair_*=reference", "elsewhere"))
	require.NoError(t, setPolicy(f.Manager, policy))
	err = want.Check(f.Manifest())
	require.ErrorContains(t, err, "manifest: policy fingerprint is ")
	require.ErrorContains(t, err, `manifest: op "add_one" is served by default.flagos, want vendor.acme`)
	require.ErrorContains(t, err, `manifest: op "pair_bwd" is served by reference.go, want vendor.acme`)

	require.NoError(t, f.registry.Replace(opregistry.Source{Name: "test", Version: "2", Impls: []opregistry.Impl{
		{Op: addOne, ID: "default.flagos", Kind: opregistry.KindFlagos, Run: f.flagos.run},
	}}))
	err = want.Check(f.Manifest())
	require.ErrorContains(t, err, `manifest: op "pair_fwd" is served by none, want vendor.acme`)
}

func TestManifestOfAnotherSource(t *testing.T) {
	m := opmanager.Manifest{Version: 1, Ops: []opmanager.ManifestOp{{Op: "a", Impl: "x", Source: "s", Version: "1"}, {Op: "b", Impl: "x"}}}
	other := opmanager.Manifest{Version: 1, Ops: []opmanager.ManifestOp{{Op: "a", Impl: "x", Source: "s", Version: "2"}, {Op: "c", Impl: "x"}}}
	require.EqualError(t, m.Check(other), `manifest: op "a" is served by x of s 2, want version 1
manifest: op "b" is missing, want it served by x
manifest: op "c" is served by x, want no such op`)
}

func TestFingerprint(t *testing.T) {
	a, b := oppolicy.Default(), oppolicy.Default()
	require.NoError(t, a.SetPrefer("vendor", "one place"))
	require.NoError(t, b.SetPrefer("VENDOR", "another"))
	assert.Equal(t, a.Fingerprint(), b.Fingerprint())
	assert.NotEqual(t, oppolicy.Default().Fingerprint(), a.Fingerprint())
	// B5: an empty allow list is not a missing one.
	b.Allow = []string{}
	assert.NotEqual(t, a.Fingerprint(), b.Fingerprint())
}

// FuzzParseManifest gives texts to the reader of manifest.json. One that it accepts is written as
// what is read again the same.
//
// Oracle: round trip.
func FuzzParseManifest(f *testing.F) {
	for _, text := range []string{
		`{"version":1}`, `{"version":1}x`, `{"version":2}`, `null`, `[]`, strings.Repeat("[", 20000),
		`{"version":1,"policy":"f00","ops":[{"op":"rmsnorm_fwd","impl":"default.flagos","rules":"layer 1"},{"op":"rmsnorm_fwd"},{}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		m, err := opmanager.ParseManifest(text)
		if err != nil {
			return
		}
		_ = m.Check(opmanager.Manifest{})
		_ = opmanager.Manifest{}.Check(m)
		_ = m.Check(m)
		written, err := json.Marshal(m)
		require.NoError(t, err)
		again, err := opmanager.ParseManifest(written)
		require.NoError(t, err)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}

func TestParseManifestErrors(t *testing.T) {
	for give, want := range map[string]string{
		``:                           "manifest: EOF",
		`{"version":2}`:              "manifest: given version 2, want 1",
		`{"version":1,"opps":[]}`:    `manifest: json: unknown field "opps"`,
		`{"version":1,"ops":[{"op":`: "manifest: unexpected EOF",
		`{"version":1}{"version":1}`: "manifest: given text after the value",
	} {
		_, err := opmanager.ParseManifest([]byte(give))
		require.ErrorContains(t, err, want, give)
	}
}
