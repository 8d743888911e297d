package command_test

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/dashboards"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMonitoring asks a Prometheus that scrapes a run everything that dashboards and rules ask.
func TestMonitoring(t *testing.T) {
	primustest.Long(t, "it types the commands of a page")
	t.Parallel()
	l := commandtest.NewLab(t)
	policy := filepath.Join(l.Dir, "policy.yaml")
	l.Write(policy, "prefer: flagos\n")
	run := commandtest.Start(t, l.Args("train_iters=1000000", "--metrics-addr", "127.0.0.1:0", "eval_interval=50", "eval_iters=1", "save_interval=50",
		"log_interval=50", "--peak-tflops", "1", "--policy", policy)...)
	defer func() { require.ErrorIs(t, run.Stop(), backend.ErrInterrupted) }()
	run.WaitFor("step 100/")
	prometheus := commandtest.StartPrometheus(t, regexp.MustCompile(`http://(\S+)/metrics`).FindStringSubmatch(run.Stderr.String())[1])

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
				_, err := prometheus.Query(expr, time.Now())
				return err == nil
			}, 2*time.Minute, 50*time.Millisecond, "%s: %s", d.Title, expr)
		}
	}
	must = append(must, "run_op_impl:primus_op_seconds:rate5m", "run_op_impl:primus_op_calls:rate5m",
		"run_rank:primus_train_step_duration_seconds:mean5m", "run_rank:primus_train_step_duration_seconds:mean1h")
	assert.Eventually(t, func() bool {
		var empty []string
		for _, expr := range must {
			if all, err := prometheus.Query(expr, time.Now()); err != nil || len(all) == 0 {
				empty = append(empty, expr)
			}
		}
		must = empty
		return len(must) == 0
	}, 2*time.Minute, 100*time.Millisecond)
	assert.Empty(t, must, "no answer, or none but NaN")

	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, State, LastError string }
		}
	}
	require.NoError(t, prometheus.Get("/api/v1/rules", nil, &rules))
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
	require.NoError(t, prometheus.Get("/api/v1/query_exemplars", url.Values{
		"query": {"primus_op_duration_seconds_bucket"}, "start": {now.Add(-time.Minute).Format(time.RFC3339)}, "end": {now.Add(time.Minute).Format(time.RFC3339)},
	}, &exemplars))
	require.NotEmpty(t, exemplars)
	assert.Regexp(t, `^[1-9]\d*$`, exemplars[0].Exemplars[0].Labels["step"])

	prometheus.Answers(t, `primus_op_selected_info{op="swiglu"} offset 2s`)
	changed := time.Now()
	l.Write(policy, "prefer: flagos\nper_op: {swiglu: reference}\n")
	prometheus.Answers(t, `primus_op_switches_total{op="swiglu"} > 0 and on (run) primus_policy_changes_total > 0`)
	// Annotations look a minute back. So does this, to a second before the change.
	for _, d := range dashboards.All() {
		for _, a := range d.Annotations.List {
			assert.Eventually(t, func() bool { // one scrape may see the count and not yet the impl
				all, err := prometheus.Query(variables.Replace(a.Expr), changed.Add(time.Minute-time.Second))
				return err == nil && len(all) > 0
			}, 2*time.Minute, 50*time.Millisecond, "%s: no mark %q", d.Title, a.Name)
		}
	}
}
