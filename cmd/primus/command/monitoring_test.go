package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/metrics/dashboards"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// server is a Prometheus that runs.
type server struct{ base string }

// get asks the API and decodes the data of its answer.
func (s server) get(path string, query url.Values, data any) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get(s.base + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return fmt.Errorf("%s", answer.Error)
	}
	return nil
}

// samples returns how many values an expression has at a time that are not NaN.
func (s server) samples(expr string, at time.Time) (int, error) {
	var data struct {
		Result []struct{ Value []any }
	}
	err := s.get("/api/v1/query", url.Values{"query": {expr}, "time": {at.Format(time.RFC3339Nano)}}, &data)
	n := 0
	for _, sample := range data.Result {
		if len(sample.Value) == 2 && sample.Value[1] != "NaN" {
			n++
		}
	}
	return n, err
}

// startPrometheus scrapes an address with the configuration of examples/monitoring, only faster.
func startPrometheus(t *testing.T, target string) server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed; scripts/install-test-deps.sh installs it")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "monitoring", "prometheus.yml"))
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(text, &config))
	config["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"}
	rules, ok := config["rule_files"].([]any)
	require.True(t, ok)
	for i := range rules {
		rules[i] = filepath.Join(root, "examples", "monitoring", fmt.Sprint(rules[i]))
	}
	config["scrape_configs"] = []any{map[string]any{"job_name": "primus", "static_configs": []any{map[string]any{"targets": []any{target}}}}}
	text, err = yaml.Marshal(config)
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, text, 0o644))

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--enable-feature=exemplar-storage", "--log.level=error")
	log := &buffer{}
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return server{"http://" + addr}
}

// TestMonitoring asks a Prometheus that scrapes a run everything that dashboards and rules ask.
func TestMonitoring(t *testing.T) {
	l := newLab(t)
	policy := filepath.Join(l.dir, "policy.yaml")
	l.write(policy, "prefer: flagos\n")
	stderr := &buffer{}
	root := command.NewRoot(command.Streams{Out: io.Discard, Err: stderr})
	root.SetArgs(l.args("train_iters=1000000", "--metrics-addr", "127.0.0.1:0", "eval_interval=50", "eval_iters=1", "save_interval=50",
		"log_interval=50", "--peak-tflops", "1", "--policy", policy))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	defer func() {
		cancel()
		require.ErrorIs(t, <-ended, backend.ErrInterrupted)
	}()
	waitFor(t, stderr, "step 100/")
	prometheus := startPrometheus(t, regexp.MustCompile(`http://(\S+)/metrics`).FindStringSubmatch(stderr.String())[1])

	variables := strings.NewReplacer("$run", ".+", "$rank", ".+", "$vendor", ".*", "$__rate_interval", "30s", "$__interval", "1s")
	var must []string // have an answer
	for _, d := range dashboards.All() {
		for _, q := range d.Queries() {
			expr := variables.Replace(q.Expr)
			if !q.MayBeEmpty {
				must = append(must, expr)
				continue
			}
			require.Eventually(t, func() bool {
				_, err := prometheus.samples(expr, time.Now())
				return err == nil
			}, 30*time.Second, 50*time.Millisecond, "%s: %s", d.Title, expr)
		}
	}
	must = append(must, "run_op_impl:primus_op_seconds:rate5m", "run_op_impl:primus_op_calls:rate5m",
		"run_rank:primus_train_step_duration_seconds:mean5m", "run_rank:primus_train_step_duration_seconds:mean1h")
	assert.Eventually(t, func() bool {
		var empty []string
		for _, expr := range must {
			if n, err := prometheus.samples(expr, time.Now()); err != nil || n == 0 {
				empty = append(empty, expr)
			}
		}
		must = empty
		return len(must) == 0
	}, 30*time.Second, 100*time.Millisecond)
	assert.Empty(t, must, "no answer, or none but NaN")

	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, State, LastError string }
		}
	}
	require.NoError(t, prometheus.get("/api/v1/rules", nil, &rules))
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			assert.Equal(t, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
			assert.NotEqual(t, "firing", rule.State, rule.Name)
		}
	}
	var exemplars []struct {
		Exemplars []struct{ Labels map[string]string }
	}
	now := time.Now()
	require.NoError(t, prometheus.get("/api/v1/query_exemplars", url.Values{
		"query": {"primus_op_duration_seconds_bucket"}, "start": {now.Add(-time.Minute).Format(time.RFC3339)}, "end": {now.Add(time.Minute).Format(time.RFC3339)},
	}, &exemplars))
	require.NotEmpty(t, exemplars)
	assert.Regexp(t, `^[1-9]\d*$`, exemplars[0].Exemplars[0].Labels["step"])

	answers := func(expr string) {
		t.Helper()
		require.Eventually(t, func() bool {
			n, err := prometheus.samples(expr, time.Now())
			return err == nil && n > 0
		}, 30*time.Second, 50*time.Millisecond, expr)
	}
	answers(`primus_op_selected_info{op="swiglu"} offset 2s`)
	changed := time.Now()
	l.write(policy, "prefer: flagos\nper_op: {swiglu: reference}\n")
	answers(`primus_op_switches_total{op="swiglu"} > 0 and on (run) primus_policy_changes_total > 0`)
	// Annotations look a minute back. So does this, to a second before the change.
	for _, d := range dashboards.All() {
		for _, a := range d.Annotations.List {
			n, err := prometheus.samples(variables.Replace(a.Expr), changed.Add(time.Minute-time.Second))
			require.NoError(t, err)
			assert.Positive(t, n, "%s: no mark %q", d.Title, a.Name)
		}
	}
}
