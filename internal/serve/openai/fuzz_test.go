package openai_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/serve/openai"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// Any body is answered with a text or with an error of the client, in OpenAI's form.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"prompt": "a", "max_tokens": 2, "logprobs": 1, "stop": ["b"], "n": 2}`,
		`{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "stream": true, "stream_options": {"include_usage": true}}`,
		`{"prompt": [[1, 2], [3]], "temperature": 0.5, "top_p": 0.5, "top_k": 3, "seed": -1}`, `{"prompt": ["", "a"]}`, `[]`, `{"messages": [{"role": "a", "content": [{}]}]}`,
	} {
		f.Add(body, false)
		f.Add(body, true)
	}
	reg := opregistry.NewRegistry()
	require.NoError(f, reg.Register(reference.Source()))
	require.NoError(f, reg.Register(flagos.Source()))
	mgr := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	backend := cpu.New()
	m, err := model.NewFrozen(model.Config{
		NumLayers: 1, HiddenSize: 8, FFNHiddenSize: 8, NumAttentionHeads: 1, SeqLength: 12, VocabSize: 256, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.3,
	}, backend)
	require.NoError(f, err)
	m.Init(1)
	e, err := inference.New(m, tokenizer.Byte{}, mgr, inference.Settings{Slots: 4})
	require.NoError(f, err)
	f.Cleanup(func() {
		require.NoError(f, e.Close())
		require.NoError(f, m.Close())
		mgr.Close()
	})
	form, err := inference.NewChat(f.Context(), tokenizer.Byte{}, "chatml")
	require.NoError(f, err)
	h := openai.New("tiny", openai.DefaultLimits())
	h.Open(e, form)
	server := httptest.NewServer(h)
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, body string, chat bool) {
		defer primustest.Measured(t, len(body))()
		path := "/v1/completions"
		if chat {
			path = "/v1/chat/completions"
		}
		resp, err := http.Post(server.URL+path, "application/json", strings.NewReader(body)) //nolint:noctx // a test
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Less(t, resp.StatusCode, 500)
		if resp.StatusCode != http.StatusOK {
			var got struct {
				Error struct{ Message, Type string }
			}
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&got))
			require.NotEmpty(t, got.Error.Message)
			require.Equal(t, "invalid_request_error", got.Error.Type)
		}
	})
}
