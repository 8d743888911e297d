package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asJSON is what a value looks like in an answer.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestExplainAnswersAsTheManagerDoes(t *testing.T) {
	b := newBench(t, nil)
	_, err := b.setLayer(opmanager.LayerService, "rules: [{layers: 2, phase: backward, prefer: reference}]")
	require.NoError(t, err)
	call := opmanager.CallShape{DType: tensor.BF16, Shape: tensor.Shape{8, 16}}
	explain := func(m *opmanager.Manager, call *opmanager.CallShape) opmanager.Explanation {
		e, err := m.Explain("rmsnorm_fwd")
		if call != nil {
			e, err = m.ExplainCall("rmsnorm_fwd", *call)
		}
		require.NoError(t, err)
		return e
	}
	tests := []struct {
		query string
		want  opmanager.Explanation
	}{
		{"", explain(b.manager, nil)},
		{"?dtype=bf16&shape=8,16", explain(b.manager, &call)},
		{"?shape=3", explain(b.manager, &opmanager.CallShape{DType: tensor.F32, Shape: tensor.Shape{3}})},
		{"?layer=2&phase=backward", explain(b.manager.Layer(2).Phase(oppolicy.PhaseBackward), nil)},
		{"?layer=0&phase=backward&dtype=f64", explain(b.manager.Layer(0).Phase(oppolicy.PhaseBackward), &opmanager.CallShape{DType: tensor.F64})},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			got := b.ask(http.MethodGet, "/v1/ops/rmsnorm_fwd/explain"+tt.query, "")
			require.Equal(t, http.StatusOK, got.status, got.body)
			assert.JSONEq(t, asJSON(t, tt.want), got.body)
			assert.Contains(t, b.ask(http.MethodGet, "/v1/explain"+tt.query, "").body, strings.TrimSpace(got.body))
		})
	}
}

func TestLists(t *testing.T) {
	b := newBench(t, nil)
	require.NoError(t, b.add())
	ops := read[[]serve.Op](b, "/v1/ops")
	assert.Len(t, ops, len(b.manager.ExplainAll()))
	for _, op := range ops {
		if op.Op == "residual_add" {
			assert.Equal(t, uint64(1), op.Calls)
			assert.Equal(t, 3, op.Order)
		}
	}
	impls := read[[]serve.Impl](b, "/v1/impls?op=residual_add")
	require.Len(t, impls, 3)
	assert.Equal(t, "default.flagos selected 1", impls[0].Impl+" "+impls[0].State+" "+asJSON(t, impls[0].Calls))
	assert.Len(t, read[[]serve.Impl](b, "/v1/impls?vendor=acme&state=candidate"), 1)
	assert.Empty(t, read[[]serve.Impl](b, "/v1/impls?kind=vendor&state=selected"))
	assert.JSONEq(t, asJSON(t, b.manager.Manifest()), b.ask(http.MethodGet, "/v1/manifest", "").body)
	assert.JSONEq(t, asJSON(t, b.manager.Stats()), b.ask(http.MethodGet, "/v1/stats", "").body)
	assert.Contains(t, read[[]serve.OpSource](b, "/v1/sources"), serve.OpSource{Name: "acme", Version: "7", Ops: 1, Impls: 1})
	for _, empty := range []string{"plugins", "patches", "backends", "runs", "quarantine", "sd"} {
		got := b.ask(http.MethodGet, "/v1/"+empty, "")
		assert.Equal(t, "200 []", asJSON(t, got.status)+" "+strings.TrimSpace(got.body), empty)
	}
	assert.Contains(t, b.ask(http.MethodGet, "/metrics", "").body, `primus_op_calls_total{impl="default.flagos",kind="flagos",op="residual_add",vendor=""} 1`)
	assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, "/healthz", "").status)
	assert.Equal(t, http.StatusNotFound, b.ask(http.MethodGet, "/debug/pprof/", "").status, "only when asked for")
}

func TestDiscovery(t *testing.T) {
	var fault error
	b := newBench(t, func(_ *serve.Config, set *serve.Settings) {
		set.Discovery = func(context.Context) (any, error) { return []string{"a:1"}, fault }
	})
	got := b.ask(http.MethodGet, "/v1/sd", "")
	assert.Equal(t, "application/json 200 [\"a:1\"]", fmt.Sprint(got.header.Get("Content-Type"), " ", got.status, " ", strings.TrimSpace(got.body)))
	fault = errors.New("etcd is away")
	got = b.ask(http.MethodGet, "/v1/sd", "")
	assert.Equal(t, http.StatusServiceUnavailable, got.status, "at which Prometheus keeps what it has")
	assert.Equal(t, "etcd is away", got.problem(t).Detail)
}

func TestOpenAPI(t *testing.T) {
	b := newBench(t, nil)
	doc := read[struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			Summary    string `json:"summary"`
			Parameters []struct{ Name, In string }
			Security   []any `json:"security"`
			Body       struct {
				Content map[string]struct {
					Schema struct{ Type string } `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Type any } `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}](b, "/openapi.json")
	assert.Regexp(t, `^3\.1`, doc.OpenAPI)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			changes := method != "get" && path != "/v1/policy/proposal"
			assert.Equal(t, changes, len(op.Security) > 0, "%s %s needs a token if it changes something", method, path)
		}
	}
	assert.Contains(t, doc.Paths, "/v1/events")
	var rows strings.Builder
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			request := strings.ToUpper(method) + " " + strings.NewReplacer("{op}", "OP", "{id}", "ID").Replace(path)
			before := "?"
			for _, p := range op.Parameters {
				if p.In == "query" {
					request += before + p.Name + "="
					before = "&"
				}
			}
			token := ""
			if len(op.Security) > 0 {
				token = "yes"
			}
			fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", request, op.Summary, token)
		}
	}
	goldentest.Section(t, filepath.Join("..", "..", "docs", "reference", "service.md"), "go test ./internal/serve -run TestOpenAPI -update",
		"| request | what it does | token |\n|---|---|---|\n"+rows.String())
	body := doc.Paths["/v1/policy"]["put"].Body
	assert.Equal(t, "object", body.Content["application/yaml"].Schema.Type)
	assert.Equal(t, "object", body.Content["application/json"].Schema.Type)
	assert.Equal(t, "string", doc.Components.Schemas["RuleView"].Properties["phase"].Type, "as it is in answers")
	assert.Contains(t, doc.Paths["/v1/policy"], "put")
}

func TestMistakes(t *testing.T) {
	b := newBench(t, nil)
	generation := b.manager.Generation()
	tests := []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string
	}{
		{"unknown path", "GET", "/v2", "", nil, 404, "openapi.json"},
		{"unknown op", "GET", "/v1/ops/rmsnorm_fdw/explain", "", nil, 404, `did you mean \"rmsnorm_fwd\"`},
		{"unknown op of impls", "GET", "/v1/impls?op=x", "", nil, 404, "not registered"},
		{"unknown run", "GET", "/v1/runs/x/steps", "", nil, 404, "/v1/runs lists"},
		{"wrong method", "POST", "/v1/ops", "", nil, 405, "want GET"},
		{"wrong method of the page", "DELETE", "/", "", nil, 405, "want GET"},
		{"unknown parameter", "GET", "/v1/ops?a=1", "", nil, 422, "unknown query parameter"},
		{"unknown dtype", "GET", "/v1/explain?dtype=f33", "", nil, 422, "want one of"},
		{"bad shape", "GET", "/v1/explain?shape=2,x", "", nil, 422, "query.shape"},
		{"negative shape", "GET", "/v1/explain?shape=-2", "", nil, 422, "query.shape"},
		{"bad layer", "GET", "/v1/explain?layer=99999999", "", nil, 422, "query.layer"},
		{"bad phase", "GET", "/v1/explain?phase=sideways", "", nil, 422, "query.phase"},
		{"proposal without type", "POST", "/v1/policy/proposal", "strict: 1", nil, 415, "application/yaml"},
		{"proposal of a form", "POST", "/v1/policy/proposal", "strict: 1", []string{"Content-Type: text/plain"}, 415, "application/yaml"},
		{"malformed", "POST", "/v1/policy/proposal", `{"strict": `, []string{"Content-Type: application/json"}, 422, "body:1"},
		{"bad values", "POST", "/v1/policy/proposal", "prefer: vendro\nstrict: 7\n", []string{asYAML}, 422, `did you mean`},
		{"empty", "POST", "/v1/policy/proposal", "", []string{asYAML}, 400, ""},
		{"huge", "POST", "/v1/policy/proposal", strings.Repeat("#", 1<<16+1), []string{asYAML}, 413, "65536 bytes"},
		{"many aliases", "POST", "/v1/policy/proposal", "prefer: &a [" + strings.Repeat("x,", 1000) + "]\nstrict: [" + strings.Repeat("*a,", 1000) + "]\n", []string{asYAML}, 422, "values"},
		{"another encoding", "POST", "/v1/policy/proposal", "p\x00r\x00e\x00f\x00e\x00r\x00:\x00 \x00\xff\xfe", []string{asYAML}, 422, "UTF-8"},
		{"long op", "GET", "/v1/ops/" + strings.Repeat("a", 9000) + "/explain", "", nil, 422, "path.op"},
		{"long op of impls", "GET", "/v1/impls?op=" + strings.Repeat("a", 9000), "", nil, 422, "query.op"},
		{"long axis", "GET", "/v1/explain?shape=2147483648", "", nil, 422, "query.shape"},
		{"layer twice", "GET", "/v1/explain?layer=1&layer=2", "", nil, 422, `\"layer\" is given 2 times`},
		{"generation twice", "PUT", "/v1/policy?expected_generation=1&expected_generation=2", "strict: 1", []string{asYAML, bearer}, 422, "want it once"},
		{"unknown op of quarantine", "DELETE", "/v1/quarantine?op=rmsnorm_fdw", "", []string{bearer}, 404, `did you mean \"rmsnorm_fwd\"`},
		{"no token", "PUT", "/v1/policy?expected_generation=1", "strict: 1", []string{asYAML}, 401, "Bearer TOKEN"},
		{"wrong token", "PUT", "/v1/policy?expected_generation=1", "strict: 1", []string{asYAML, bearer + "x"}, 401, "wrong"},
		{"wrong scheme", "DELETE", "/v1/quarantine", "", []string{"Authorization: Basic " + secret}, 401, "wrong"},
		{"no generation", "PUT", "/v1/policy", "strict: 1", []string{asYAML, bearer}, 422, "expected_generation"},
		{"future generation", "PUT", "/v1/policy?expected_generation=999", "strict: 1", []string{asYAML, bearer}, 409, "999"},
		{"past generation", "DELETE", "/v1/policy?expected_generation=0", "", []string{bearer}, 409, "read it again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := b.ask(tt.method, tt.path, tt.body, tt.headers...)
			require.Equal(t, tt.status, got.status, got.body)
			got.problem(t)
			assert.Contains(t, got.body, tt.want)
			if tt.status == http.StatusMethodNotAllowed {
				assert.Contains(t, got.header.Get("Allow"), "GET")
			}
			assert.Equal(t, tt.status == http.StatusUnauthorized, got.header.Get("WWW-Authenticate") != "")
		})
	}
	assert.Equal(t, generation, b.manager.Generation(), "nothing of this has changed anything")
	assert.NotContains(t, b.log.String(), secret)
}
