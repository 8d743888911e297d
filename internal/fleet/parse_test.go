package fleet

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"

	"github.com/primus-fl/primus/internal/primustest"
)

// Whoever may write to etcd may write anything: it is an error at most.

// Oracle: round trip.
func FuzzParseMember(f *testing.F) {
	f.Add("/primus/runs/a", encode(Member{ID: "a"}))
	f.Add("/primus/runs/a", []byte(`{"id":"b"}`))
	f.Add("a", []byte(`{"id":"","rank":"x"`))
	f.Add("/a", []byte(`{"id":"a","host":"\u001b[2J","policy":{"rejected":"a\n12:00 joined b"}} `))
	f.Fuzz(func(t *testing.T, key string, text []byte) {
		defer primustest.Measured(t, len(key)+len(text))()
		m, err := parseMember(key, text)
		if err != nil {
			return
		}
		assert.True(t, strings.HasSuffix(key, "/"+m.ID))
		for _, text := range []string{m.ID, m.Experiment, m.Backend, m.Host, m.Metrics, m.Version, m.Fingerprint, m.Manifest, m.Policy.Rejected} {
			assert.True(t, plaintext.IsPrintable(text), "%q", text)
		}
		again, err := parseMember(key, encode(m))
		require.NoError(t, err)
		assert.Equal(t, encode(m), encode(again))
	})
}

func FuzzQuestion(f *testing.F) {
	registry := opregistry.NewRegistry()
	require.NoError(f, registry.Register(opregistry.Source{Name: "catalogue", Ops: ops.All()}))
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	f.Cleanup(manager.Close)
	f.Add([]byte(`{"op":"rmsnorm_fwd","call":{"dtype":"bf16","shape":[2,-3]}}`))
	f.Add([]byte(`{"op":"` + strings.Repeat("é", maxText) + `"}`))
	f.Add([]byte(`{"call":{"dtype":"f7"}}`))
	f.Add([]byte(`{"op":"rmsnorm_fwd","layer":9223372036854775807,"phase":"backward"}`))
	f.Add([]byte(`{"op":"rmsnorm_fwd","phase":"sideways"}`))
	f.Add([]byte(`{"policy":"prefer: vendor"}`))
	f.Add([]byte(`{"policy":"prefer: vendr"}`))
	f.Add([]byte(`{"status":true}`))
	f.Add([]byte(`{"log":{"run":"a","lines":-7,"after":9}}`))
	f.Add([]byte(`null`))
	agent := &Agent{set: Settings{Manager: manager}, keys: Config{}.keys(), id: "a"}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		r, mine := agent.answer(t.Context(), text)
		if !mine {
			assert.Zero(t, r)
			return
		}
		assert.NotEqual(t, r.Explanation == nil && !r.Usable && r.Status == nil && r.Log == nil, r.Error == "", "one of the two")
		assert.LessOrEqual(t, len(r.Error), maxText+len("…"))
		assert.True(t, utf8.ValidString(r.Error))
		assert.Equal(t, r.Error, parseReply(encode(r)).Error)
	})
}

// A question of a later release may mean less than it seems to.
func TestQuestionOfALaterRelease(t *testing.T) {
	r, mine := new(Agent).answer(t.Context(), []byte(`{"op":"rmsnorm_fwd","expert":3}`))
	assert.True(t, mine)
	assert.Equal(t, reply{Error: `the question cannot be read: json: unknown field "expert"`}, r)
}

func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"explanation":{"op":"a"}}`))
	f.Add([]byte(`{"explanation":{"op":"a"},"error":"b"}`))
	f.Add([]byte(`{"usable":true}`))
	f.Add([]byte(`{"usable":true,"error":"b"}`))
	f.Add([]byte(`{"status":{"state":"training","step":3,"loss":null,"seen":"2026-01-02T03:04:05Z"}}`))
	f.Add([]byte(`{"log":{"lines":["a","\u001b[2J"],"next":7}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		r := parseReply(text)
		assert.NotEqual(t, r.Explanation == nil && !r.Usable && r.Status == nil && r.Log == nil, r.Error == "")
	})
}
