package command_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/metrics/dashboards"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// freeAddress returns a HOST:PORT that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// startRun starts an experiment in a process of its own, which serves metrics, and returns its log.
func (l *lab) startRun(name, addr string, more ...string) (*exec.Cmd, *primustest.Buffer) {
	l.t.Helper()
	log := &primustest.Buffer{}
	cmd := child(l.t.Context(), []string{"PRIMUS_EXP_NAME=" + name}, l.args(append(more, "--metrics-addr", addr)...)...)
	cmd.Stderr = log
	require.NoError(l.t, cmd.Start())
	return cmd, log
}

// TestAlertsOfRunsThatEnd has a Prometheus watch runs that end in every way, each before it can be asked again.
func TestAlertsOfRunsThatEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	diverges, killed, finishes, absent := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)
	prometheus := startPrometheus(t, diverges, killed, finishes, absent)
	prometheus.answers(t, "up == 0")

	// It ends within its first steps, long before the first scrape.
	cmd, log := l.startRun("diverges", diverges, "lr=1e30", "min_lr=1e30", "lr_warmup_iters=0", "clip_grad=0", "--linger", "5m")
	assert.Equal(t, 1, exitCode(t, cmd.Wait()), log.String())
	assert.Contains(t, log.String(), "waiting for a last scrape of the metrics, at most 5m0s")
	fired := prometheus.answers(t, `ALERTS{alertname="PrimusLossNotFinite",alertstate="firing"}`)
	require.Len(t, fired, 1)
	assert.Equal(t, "diverges", fired[0].labels["run"])

	for _, d := range dashboards.All() {
		expr := strings.NewReplacer("$run", ".+", "$rank", ".+").Replace(d.Panels[1].Targets[0].Expr)
		shown := prometheus.answers(t, expr)
		assert.Equal(t, "PrimusLossNotFinite diverges 0", shown[0].labels["alertname"]+" "+shown[0].labels["run"]+" "+shown[0].labels["rank"], d.Title)
	}

	// Whoever was scraped is scraped once more, without being told.
	cmd, log = l.startRun("finishes", finishes, "train_iters=1000000")
	prometheus.answers(t, `primus_train_running{run="finishes"} == 1 and primus_train_step > 1`)
	stopped := time.Now()
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, exitCode(t, cmd.Wait()), log.String())
	t.Logf("stopped after %v", time.Since(stopped))
	prometheus.answers(t, `last_over_time(primus_train_running{run="finishes"}[1m]) == 0`)

	cmd, _ = l.startRun("killed", killed, "train_iters=1000000")
	prometheus.answers(t, `primus_train_running{run="killed"} == 1`)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	gone := prometheus.answers(t, `ALERTS{alertname="PrimusRunGone"}`)
	require.Len(t, gone, 1)
	assert.Equal(t, "killed", gone[0].labels["run"])
	waiting := prometheus.answers(t, `ALERTS{alertname="PrimusTargetDown"}`)
	require.Len(t, waiting, 1, "no run was ever there")
	assert.Equal(t, absent, waiting[0].labels["instance"])
	all, err := prometheus.query(`ALERTS{run="finishes"}`, time.Now())
	require.NoError(t, err)
	assert.Empty(t, all)
}

// Without a scraper nobody is waited for, and --linger waits no longer than until somebody has asked.
func TestLinger(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	got := l.train("--metrics-addr", "127.0.0.1:0")
	require.Zero(t, got.code, got.stderr)
	assert.NotContains(t, got.stderr, "last scrape")
	got = newLab(t).train("--linger", "1h", "--metrics-textfile", filepath.Join(l.dir, "run.prom"))
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stderr, "--linger has no effect")
	got = l.train("--linger", "-1s")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, onlyError(t, got), "--linger: got -1s, want a time such as 10s")

	addr := freeAddress(t)
	s := startServing(t, newLab(t).args("--serve", addr, "--linger", "1h")...)
	waitFor(t, s.stderr, "waiting for a last scrape of the metrics, at most 1h0m0s")
	code, text := s.ask(http.MethodGet, "/metrics", "")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, `primus_train_running{rank="0",run="exp"} 0`)
	require.NoError(t, <-s.ended)

	s = startServing(t, newLab(t).args("--serve", addr, "--linger", "1h")...)
	waitFor(t, s.stderr, "waiting for a last scrape")
	s.cancel()
	require.NoError(t, <-s.ended, "an interrupt ends the waiting, and the run was finished")
}
