package serve_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// routes are the requests that the service knows, and some that it does not; TEXT is any text. The
// stream of events, which does not end, has tests of its own.
var routes = []string{
	"GET /", "GET /app.js", "GET /metrics", "GET /healthz", "GET /readyz", "GET /openapi.json",
	"GET /v1/ops", "GET /v1/impls", "GET /v1/stats", "GET /v1/explain", "GET /v1/ops/TEXT/explain", "GET /v1/manifest",
	"GET /v1/policy", "PUT /v1/policy", "DELETE /v1/policy", "POST /v1/policy/proposal",
	"GET /v1/quarantine", "DELETE /v1/quarantine", "GET /v1/sources", "GET /v1/plugins", "GET /v1/patches", "GET /v1/patches/plan", "GET /v1/backends", "GET /v1/sd",
	"GET /v1/runs", "GET /v1/runs/TEXT/steps", "GET /v1/runs/TEXT/impls", "GET /v1/runs/TEXT/log",
	"POST /v1/runs/TEXT/save", "POST /v1/runs/TEXT/stop", "GET /v1/process", "GET /TEXT", "TEXT /v1/ops", "HEAD /v1/runs",
}

// Whatever a request holds, the service answers: with what was asked for or problem details that
// say what is wrong with the request, never as if it were at fault itself. Nothing changes without
// a token, which is in no answer and no log.
func FuzzRequests(f *testing.F) {
	for i := range routes {
		f.Add(uint8(i), "exp", "", "", "", true)
	}
	f.Add(uint8(13), "", "expected_generation=1", "Content-Type: application/yaml\r\n", "per_op: {residual_add: reference}\nrules: [{layers: 1-2, prefer: vendor}]\n", true)
	f.Add(uint8(15), "", "", "Content-Type: application/json; charset=utf-8\r\nAccept: text/html\r\n", `{"strict": true, "deny_vendors": ["acme"]}`, false)
	f.Add(uint8(9), "", "dtype=bf16&shape=8,16&layer=2&phase=backward", "Accept: application/cbor\r\nAccept-Encoding: gzip\r\n", "", false)
	f.Add(uint8(17), "", "op=residual_add&impl_id=vendor.acme", "Origin: http://127.0.0.1:1\r\nSec-Fetch-Site: cross-site\r\n", "", true)
	f.Add(uint8(26), "a/b%2f..", "lines=3&lines=4", "Transfer-Encoding: chunked\r\nRange: bytes=0-\r\nIf-Match: *\r\n", "3\r\nabc\r\n0\r\n\r\n", false)
	f.Add(uint8(31), "PATCH", "a=%zz;b", "Authorization: Bearer wrong\r\nHost: evil.example\r\n", "\x00\xff", false)
	var asked int
	b := newHandlerBench(f, func() { asked++ })
	f.Fuzz(func(t *testing.T, route uint8, text, query, headers, body string, trusted bool) {
		defer primustest.Measured(t, len(text)+len(query)+len(headers)+len(body))()
		method, path, _ := strings.Cut(routes[int(route)%len(routes)], " ")
		target := strings.ReplaceAll(path, "TEXT", url.PathEscape(text))
		if query != "" {
			target += "?" + query
		}
		raw := fmt.Sprintf("%s %s HTTP/1.1\r\n", strings.ReplaceAll(method, "TEXT", text), target)
		if trusted {
			raw += bearer + "\r\n"
		}
		raw += "Host: 127.0.0.1\r\n" + headers
		if !strings.Contains(headers, "Transfer-Encoding") {
			raw += fmt.Sprintf("Content-Length: %d\r\n", len(body))
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw + "\r\n" + body)))
		if err != nil {
			t.Skip("no request")
		}
		r = r.WithContext(t.Context())
		r.RemoteAddr = "127.0.0.1:1"
		generation, before := b.manager.Generation(), asked
		w := httptest.NewRecorder()
		serve.Handler(b.server).ServeHTTP(w, r)

		assert.NotEqual(t, http.StatusInternalServerError, w.Code, "%q\n%s", raw, w.Body)
		assert.NotEmpty(t, w.Header().Get("Content-Security-Policy"))
		assert.NotContains(t, w.Body.String(), secret)
		assert.NotContains(t, b.log.String(), secret)
		if !strings.Contains(raw, secret) {
			assert.Equal(t, generation, b.manager.Generation(), raw)
			assert.Equal(t, before, asked, raw)
		}
		if kind := w.Header().Get("Content-Type"); w.Code >= 400 && r.Method != http.MethodHead {
			assert.Equal(t, "application/problem+json", kind, raw)
			var p problem
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), raw)
			assert.Equal(t, w.Code, p.Status)
			assert.NotEmpty(t, p.Detail, raw)
		} else if kind == "application/json" && r.Method != http.MethodHead {
			assert.True(t, json.Valid(w.Body.Bytes()), raw)
		}
	})
}

// newHandlerBench returns a bench with a run, and without limits on how often it may be asked.
func newHandlerBench(t testing.TB, ask func()) *bench {
	t.Helper()
	b := newBench(t, func(_ *serve.Config, set *serve.Settings) {
		set.Operator = serve.Operator{Save: ask, Stop: func(error) { ask() }}
	})
	serve.LiftLimits(b.server)
	b.run.RunStarted(backend.Run{Name: "exp", FirstStep: 1, Steps: 20})
	b.run.StepDone(backend.Step{Step: 1, Loss: 2})
	return b
}
