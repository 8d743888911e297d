package commandtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// server is a Prometheus that runs.
type server struct {
	base string
	log  *primustest.Buffer
}

// runPrometheus starts the Prometheus of the machine with a configuration, until the end of the
// test.
func runPrometheus(t *testing.T, config string) server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed; scripts/install-test-deps.sh installs it")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o644))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--enable-feature=exemplar-storage", "--log.level=error")
	log := &primustest.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return server{"http://" + addr, log}
}

// Discovering starts a Prometheus with a job for each URL that lists targets.
func Discovering(t *testing.T, urls ...string) server {
	t.Helper()
	var config strings.Builder
	config.WriteString("scrape_configs:\n")
	for i, url := range urls {
		fmt.Fprintf(&config, "  - {job_name: primus-%d, honor_labels: true, scrape_interval: 1s, http_sd_configs: [{url: %q, refresh_interval: 1s}]}\n", i, url)
	}
	return runPrometheus(t, config.String())
}

// Get asks the API and decodes the data of its answer.
func (s server) Get(path string, query url.Values, data any) error {
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
		return errors.New(answer.Error)
	}
	return nil
}

// Sample is a value of an expression.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query returns the values that an expression has at a time and that are not NaN.
func (s server) Query(expr string, at time.Time) ([]Sample, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := s.Get("/api/v1/query", url.Values{"query": {expr}, "time": {at.Format(time.RFC3339Nano)}}, &data); err != nil {
		return nil, err
	}
	var all []Sample
	for _, r := range data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		if !math.IsNaN(value) {
			all = append(all, Sample{r.Metric, value})
		}
	}
	return all, nil
}

// Answers waits until an expression has values now, and returns them.
func (s server) Answers(t *testing.T, expr string) (all []Sample) {
	t.Helper()
	var err error
	primustest.Wait{
		What: expr,
		Until: func() bool {
			all, err = s.Query(expr, time.Now())
			return err == nil && len(all) > 0
		},
		Report: func() string { return fmt.Sprintf("the last error is %v; prometheus has written:\n%s", err, s.log) },
	}.Do(t)
	return all
}

// StartPrometheus scrapes an address with the configuration of examples/monitoring, only faster.
func StartPrometheus(t *testing.T, targets ...string) server {
	t.Helper()
	root := primustest.ModuleRoot(t)
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
	config["scrape_configs"] = []any{map[string]any{"job_name": "primus", "static_configs": []any{map[string]any{"targets": targets}}}}
	text, err = yaml.Marshal(config)
	require.NoError(t, err)
	return runPrometheus(t, string(text))
}
