package mlflow_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/internal/rundir/mlflow"
	"github.com/primus-fl/primus/internal/rundir/tensorboard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers as the REST API of MLflow describes.
type server struct {
	*httptest.Server
	mu          sync.Mutex
	down        bool
	experiments []string
	runs        []string
	status      []string
	params      map[string]string
	metrics     []metric
	largest     int // batch
	auth        string
}

type metric struct {
	Key       string
	Value     float64
	Timestamp int64
	Step      int64
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{params: map[string]string{}}
	mux := http.NewServeMux()
	handle := func(pattern string, h func(w http.ResponseWriter, body map[string]json.RawMessage, r *http.Request) any) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /api/2.0/mlflow/"+path, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.down {
				http.Error(w, "down", http.StatusServiceUnavailable)
				return
			}
			s.auth = r.Header.Get("Authorization")
			var body map[string]json.RawMessage
			if r.Method == http.MethodPost && !assert.NoError(t, json.NewDecoder(r.Body).Decode(&body)) {
				return
			}
			if reply := h(w, body, r); reply != nil {
				assert.NoError(t, json.NewEncoder(w).Encode(reply))
			}
		})
	}
	text := func(raw json.RawMessage) (v string) {
		assert.NoError(t, json.Unmarshal(raw, &v))
		return v
	}
	handle("GET experiments/get-by-name", func(w http.ResponseWriter, _ map[string]json.RawMessage, r *http.Request) any {
		i := slices.Index(s.experiments, r.FormValue("experiment_name"))
		if i < 0 {
			w.WriteHeader(http.StatusNotFound)
			return map[string]string{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"}
		}
		return map[string]any{"experiment": map[string]string{"experiment_id": fmt.Sprint(i)}}
	})
	handle("POST experiments/create", func(_ http.ResponseWriter, body map[string]json.RawMessage, _ *http.Request) any {
		s.experiments = append(s.experiments, text(body["name"]))
		return map[string]string{"experiment_id": fmt.Sprint(len(s.experiments) - 1)}
	})
	handle("POST runs/create", func(_ http.ResponseWriter, body map[string]json.RawMessage, _ *http.Request) any {
		s.runs = append(s.runs, text(body["experiment_id"])+"/"+text(body["run_name"]))
		return map[string]any{"run": map[string]any{"info": map[string]string{"run_id": fmt.Sprintf("run%d", len(s.runs))}}}
	})
	handle("POST runs/log-batch", func(_ http.ResponseWriter, body map[string]json.RawMessage, _ *http.Request) any {
		var metrics []metric
		var params []struct{ Key, Value string }
		if body["metrics"] != nil {
			assert.NoError(t, json.Unmarshal(body["metrics"], &metrics))
		}
		if body["params"] != nil {
			assert.NoError(t, json.Unmarshal(body["params"], &params))
		}
		s.largest = max(s.largest, len(metrics))
		assert.LessOrEqual(t, len(params), 100)
		for _, p := range params {
			s.params[p.Key] = p.Value
		}
		s.metrics = append(s.metrics, metrics...)
		return map[string]any{}
	})
	handle("POST runs/update", func(w http.ResponseWriter, body map[string]json.RawMessage, _ *http.Request) any {
		if text(body["run_id"]) == "gone" {
			w.WriteHeader(http.StatusNotFound)
			return map[string]string{"message": "no such run"}
		}
		s.status = append(s.status, text(body["run_id"])+" "+text(body["status"]))
		return map[string]any{}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *server) set(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
}

func log(c *mlflow.Client, from, to int) {
	for i := from; i <= to; i++ {
		c.Log(int64(i), time.UnixMilli(int64(i)), tensorboard.Scalar{Tag: "train/loss", Value: 1 / float64(i)}, tensorboard.Scalar{Tag: "lr", Value: 0.5})
	}
}

func TestClient(t *testing.T) {
	s := newServer(t)
	var params []mlflow.Param
	for i := range 250 {
		params = append(params, mlflow.Param{Key: fmt.Sprintf("p%d", i), Value: strings.Repeat("é", 4000)})
	}
	started := ""
	c, err := mlflow.Open(mlflow.Settings{URI: s.URL + "/", Experiment: "exp", Name: "first", Params: params, Token: "secret", Started: func(id string) { started = id }})
	require.NoError(t, err)
	log(c, 1, 2500)
	line := c.Close(false)
	assert.Empty(t, c.Close(false), "a second call")
	assert.Contains(t, line, "run run1 of "+s.URL+", 5000 metrics")
	assert.Equal(t, "run1", started)
	assert.Equal(t, []string{"exp"}, s.experiments)
	assert.Equal(t, []string{"0/first"}, s.runs)
	assert.Equal(t, []string{"run1 FINISHED"}, s.status)
	assert.Len(t, s.params, 250)
	assert.LessOrEqual(t, len(s.params["p7"]), 6000)
	assert.Equal(t, "Bearer secret", s.auth)
	require.Len(t, s.metrics, 5000)
	assert.Equal(t, 1000, s.largest)
	assert.Equal(t, metric{"train/loss", 0.25, 4, 4}, s.metrics[6])

	c, err = mlflow.Open(mlflow.Settings{URI: s.URL, Experiment: "exp", Name: "first", RunID: "run1"})
	require.NoError(t, err)
	log(c, 2501, 2502)
	c.Close(true)
	assert.Equal(t, []string{"0/first"}, s.runs, "it goes on")
	assert.Equal(t, []string{"run1 FINISHED", "run1 RUNNING", "run1 FAILED"}, s.status)
	assert.Len(t, s.metrics, 5004)

	c, err = mlflow.Open(mlflow.Settings{URI: s.URL, Experiment: "exp", Name: "again", RunID: "gone"})
	require.NoError(t, err)
	c.Close(false)
	assert.Equal(t, []string{"0/first", "0/again"}, s.runs, "a run that the server does not have begins anew")
}

// What the server cannot take waits for it, and training does not.
func TestServerIsDown(t *testing.T) {
	s := newServer(t)
	s.set(true)
	warnings := make(chan string, 10)
	c, err := mlflow.Open(mlflow.Settings{URI: s.URL, Experiment: "exp", Name: "n", Warn: func(text string) { warnings <- text }})
	require.NoError(t, err)
	log(c, 1, 10)
	assert.Contains(t, <-warnings, "status 503: down")
	s.set(false)
	assert.Contains(t, c.Close(false), "20 metrics")
	assert.Len(t, s.metrics, 20)
	assert.Empty(t, warnings, "one warning")

	gone := httptest.NewServer(nil)
	gone.Close()
	c, err = mlflow.Open(mlflow.Settings{URI: gone.URL, Experiment: "exp", Name: "n", Warn: func(text string) { warnings <- text }})
	require.NoError(t, err)
	log(c, 1, 60_000)
	assert.Regexp(t, `was not reached, and 120000 metrics are lost: .*connection refused`, c.Close(false))
	assert.Contains(t, <-warnings, "training goes on")
}

func TestURI(t *testing.T) {
	for _, uri := range []string{"", "file:///x", "databricks", "http://", "http://user:secret@:x%"} {
		_, err := mlflow.Open(mlflow.Settings{URI: uri})
		require.ErrorContains(t, err, "want http://HOST:PORT", uri)
		assert.NotContains(t, err.Error(), "secret")
	}
}
