package train_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/dashboards"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAlertsOfRunsThatEnd has a Prometheus watch runs that end in every way, each before it can be
// asked again.
func TestAlertsOfRunsThatEnd(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	t.Parallel()
	l := commandtest.NewLab(t)
	diverges, killed, finishes, absent := primustest.FreeAddress(t), primustest.FreeAddress(t), primustest.FreeAddress(t), primustest.FreeAddress(t)
	prometheus := commandtest.StartPrometheus(t, diverges, killed, finishes, absent)
	prometheus.Answers(t, "up == 0")

	// It ends within its first steps, long before the first scrape.
	run := l.StartRun("diverges", diverges, "lr=1e30", "min_lr=1e30", "lr_warmup_iters=0", "clip_grad=0", "--linger", "5m")
	assert.Equal(t, 1, commandtest.ExitCode(t, run.Wait()), run.Log.String())
	assert.Contains(t, run.Log.String(), "waiting for a last scrape of the metrics, at most 5m0s")
	fired := prometheus.Answers(t, `ALERTS{alertname="PrimusLossNotFinite",alertstate="firing"}`)
	require.Len(t, fired, 1)
	assert.Equal(t, "diverges", fired[0].Labels["run"])

	for _, d := range dashboards.All() {
		expr := strings.NewReplacer("$run", ".+", "$rank", ".+").Replace(d.Panels[1].Targets[0].Expr)
		shown := prometheus.Answers(t, expr)
		assert.Equal(t, "PrimusLossNotFinite diverges 0", shown[0].Labels["alertname"]+" "+shown[0].Labels["run"]+" "+shown[0].Labels["rank"], d.Title)
	}

	// Whoever was scraped is scraped once more, without being told.
	run = l.StartRun("finishes", finishes, "train_iters=1000000")
	prometheus.Answers(t, `primus_train_running{run="finishes"} == 1 and primus_train_step > 1`)
	stopped := time.Now()
	require.NoError(t, run.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()), run.Log.String())
	t.Logf("stopped after %v", time.Since(stopped))
	prometheus.Answers(t, `last_over_time(primus_train_running{run="finishes"}[1m]) == 0`)

	run = l.StartRun("killed", killed, "train_iters=1000000")
	prometheus.Answers(t, `primus_train_running{run="killed"} == 1`)
	require.NoError(t, run.Process.Kill())
	_ = run.Wait()
	gone := prometheus.Answers(t, `ALERTS{alertname="PrimusRunGone"}`)
	require.Len(t, gone, 1)
	assert.Equal(t, "killed", gone[0].Labels["run"])
	waiting := prometheus.Answers(t, `ALERTS{alertname="PrimusTargetDown"}`)
	require.Len(t, waiting, 1, "no run was ever there")
	assert.Equal(t, absent, waiting[0].Labels["instance"])
	all, err := prometheus.Query(`ALERTS{run="finishes"}`, time.Now())
	require.NoError(t, err)
	assert.Empty(t, all)
}

// Without a scraper nobody is waited for, and --linger waits no longer than until somebody has
// asked.
func TestLinger(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	got := l.Train("--metrics-addr", "127.0.0.1:0")
	require.Zero(t, got.Code, got.Stderr)
	assert.NotContains(t, got.Stderr, "last scrape")
	got = commandtest.NewLab(t).Train("--linger", "1h", "--metrics-textfile", filepath.Join(l.Dir, "run.prom"))
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "--linger has no effect")
	got = l.Train("--linger", "-1s")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "--linger: given -1s, want a time such as 10s")

	addr := primustest.FreeAddress(t)
	s := commandtest.StartServing(t, commandtest.NewLab(t).Args("--serve", addr, "--linger", "1h")...)
	s.WaitFor("waiting for a last scrape of the metrics, at most 1h0m0s")
	code, text := s.Ask(http.MethodGet, "/metrics", "")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, `primus_train_running{rank="0",run="exp"} 0`)
	require.NoError(t, s.Wait())

	s = commandtest.StartServing(t, commandtest.NewLab(t).Args("--serve", addr, "--linger", "1h")...)
	s.WaitFor("waiting for a last scrape")
	require.NoError(t, s.Stop(), "an interrupt ends the waiting, and the run was finished")
}
