package serve_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveModel trains a few steps and serves the model.
func serveModel(t *testing.T, more ...string) *commandtest.Serving {
	t.Helper()
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=2").Code)
	s := commandtest.StartServing(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--model", l.Path(), "--model-name", "tiny"}, more...)...)
	s.WaitFor("model tiny from ")
	return s
}

func TestServeModel(t *testing.T) {
	t.Parallel()
	s := serveModel(t, "--token-file", commandtest.TokenFile(t), "--context", "64")
	status, body := s.Ask("GET", "/v1/models", "")
	assert.Equal(t, 200, status)
	assert.Contains(t, body, `"id":"tiny"`)
	status, body = s.Ask("GET", "/readyz", "")
	assert.Equal(t, 200, status, body)
	status, body = s.Ask("POST", "/v1/completions", `{"prompt": "func", "max_tokens": 5}`)
	assert.Equal(t, 200, status, body)
	assert.Contains(t, body, `"completion_tokens":5`)
	status, body = s.Ask("POST", "/v1/completions", `{"prompt": "`+strings.Repeat("a", 64)+`"}`)
	assert.Equal(t, 400, status)
	assert.Contains(t, body, "fewer than the 64")

	_, figures := s.Ask("GET", "/metrics", "")
	assert.Regexp(t, `(?m)^primus_inference_generated_tokens_total\{rank="0",run="tiny"\} 5$`, figures)

	resp, err := http.Post(s.Base+"/v1/completions", "application/json", strings.NewReader(`{"prompt": "a"}`)) //nolint:noctx // a test
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	assert.Contains(t, string(text), "invalid_api_key")
}

func TestModelPage(t *testing.T) {
	primustest.Long(t, "it looks at pages in a browser")
	t.Parallel()
	b := commandtest.NewBrowser(t)
	s := serveModel(t)
	b.Do(chromedp.EmulateViewport(1000, 800), chromedp.Navigate(s.Base+"/"))
	b.Click(`a[href="model"]`)
	b.Sees(`document.querySelector("#try-title")?.textContent === "Try the model"`)
	b.Do(chromedp.SendKeys("#prompt", "func main"), chromedp.SetValue("#tokens", "7"))
	b.Click("#send")
	b.Sees(`/^7 tokens in [\d.]+ s, [\d.]+ tokens\/s, ended by length$/.test(document.getElementById("state").textContent)`)
	b.Sees(`document.getElementById("answer").textContent.length > 0`)
	b.Picture("model-1280", 1280, 900)
	b.Picture("model-390", 390, 844)
	b.Dark(true)
	b.Picture("model-390-dark", 390, 844)
	b.Dark(false)
	b.Do(chromedp.SetValue("#kind", "chat/completions"))
	b.Click("#send")
	b.Sees(`document.getElementById("state").textContent.includes("no chat template")`)
}

func TestModelUsage(t *testing.T) {
	for give, want := range map[string]string{
		"--context 5":              "--context needs --model",
		"--model-name x":           "--model-name needs --model",
		"--model x --parallel 0":   "given 0",
		"--model /nonexistent/dir": "/nonexistent/dir",
	} {
		got := commandtest.Run(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, strings.Fields(give)...)...)
		assert.NotZero(t, got.Code, give)
		assert.Contains(t, got.Stderr, want, give)
		assert.NotContains(t, got.Stderr, "service on", give)
	}
}
