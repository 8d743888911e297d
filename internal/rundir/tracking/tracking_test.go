package tracking_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/primus-fl/primus/internal/rundir/tracking"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, workspace string) *rundir.Dir {
	t.Helper()
	d, err := rundir.Open(rundir.Location{Workspace: workspace, WorkGroup: "g", UserName: "u", ExpName: "e"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

func none(string) string { return "" }

func params(t *testing.T) *document.Map {
	t.Helper()
	v, _, err := document.Parse(t.Context(), formats.YAML{}, "p.yaml", []byte("lr: 0.5\ndeep: {a: 1}\nhf_token: secret\n"))
	require.NoError(t, err)
	m, _ := v.Map()
	return m
}

func TestTrackers(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body) // a GET has none
		text, err := json.Marshal(body)
		assert.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Path[len("/api/2.0/mlflow/"):]+" "+r.FormValue("experiment_name")+string(text))
		_, err = w.Write([]byte(`{"experiment": {"experiment_id": "7"}, "run": {"info": {"run_id": "abc"}}}`))
		assert.NoError(t, err)
	}))
	defer server.Close()
	workspace := t.TempDir()
	d := open(t, workspace)
	c := tracking.Trackers{MLflowURI: server.URL, WandbProject: "p"}
	var warnings []string
	run := tracking.Run{Dir: d, Name: "e", Group: "g_u", FirstStep: 1, Params: params(t), Env: none, Warn: func(text string) { warnings = append(warnings, text) }}
	for range 2 {
		tr, err := tracking.Open(c, run)
		require.NoError(t, err)
		tr.Log(1, tensorboard.Scalar{Tag: "train/loss", Value: 2})
		lines := tr.End(false)
		require.Len(t, lines, 2)
		assert.Equal(t, "mlflow run abc of "+server.URL+", 1 metrics", lines[0])
		assert.Regexp(t, `^wandb sync .*offline-run-`, lines[1])
		run.FirstStep = 2
	}
	assert.Empty(t, warnings)
	all := strings.Join(asked, "\n")
	assert.Contains(t, all, "experiments/get-by-name g_u")
	assert.Equal(t, 1, strings.Count(all, "runs/create"), "the run goes on")
	assert.Contains(t, all, `{"key":"deep.a","value":"1"}`)
	assert.NotContains(t, all, "secret")
	written, err := filepath.Glob(filepath.Join(workspace, "g", "u", "e", "wandb", "*", "run-*.wandb"))
	require.NoError(t, err)
	require.Len(t, written, 2)
	text, err := os.ReadFile(written[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), "train/loss")
	assert.NotContains(t, string(text), "secret")
}

func TestConfig(t *testing.T) {
	uri := func(string) string { return "http://tracker:5000" }
	for want, c := range map[string]tracking.Trackers{
		"":                                   {DisableMLflow: true, MLflowURI: "databricks", MLflowRun: "x"},
		"mlflow_tracking_uri: it, or the":    {MLflowRun: "x"},
		"has to be http://HOST:PORT":         {MLflowURI: "file:///x"},
		"wandb_project: given null with wan": {WandbName: "n"},
	} {
		err := c.Validate(none)
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.ErrorContains(t, err, want)
	}
	assert.NoError(t, tracking.Trackers{MLflowRun: "x"}.Validate(uri))
	_, asked := tracking.Trackers{}.MLflow(uri)
	assert.False(t, asked, "the variable alone begins nothing")

	var nothing *tracking.Set
	nothing.Log(1)
	assert.Empty(t, nothing.End(false))
}

// A directory that cannot be written ends no run.
func TestWandbThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	warned := ""
	tr, err := tracking.Open(tracking.Trackers{WandbProject: "p", WandbDir: file}, tracking.Run{
		Dir: open(t, t.TempDir()), Name: "e", Params: params(t), Env: none, Warn: func(text string) { warned = text },
	})
	require.NoError(t, err)
	assert.Contains(t, warned, "wandb is left out from now on; training goes on")
	tr.Log(1)
	assert.Len(t, tr.End(false), 1)
}
