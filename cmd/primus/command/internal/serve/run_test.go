package serve_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Runs are shown from their files when they have ended, were killed, or go on in another process.
func TestServeRunsFromTheirFiles(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	got := l.Train("train_iters=4")
	require.Zero(t, got.Code, got.Stderr)
	running := l.StartRun("running", "127.0.0.1:0", "train_iters=1000000", "--linger", "0s")
	killed := l.StartRun("killed", "127.0.0.1:0", "train_iters=1000000", "--linger", "0s")
	s := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--run", l.Workspace, "--token-file", commandtest.TokenFile(t))
	byID := func() map[string]runs.Run {
		_, text := s.Ask(http.MethodGet, "/v1/runs", "")
		var all []runs.Run
		require.NoError(t, json.Unmarshal([]byte(text), &all))
		found := map[string]runs.Run{}
		for _, r := range all {
			found[r.ID] = r
		}
		return found
	}
	const at = "group/user/"
	require.Eventually(t, func() bool {
		all := byID()
		return all[at+"running"].Step > 1 && all[at+"killed"].Step > 1
	}, 2*time.Minute, 50*time.Millisecond)
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())
	require.Eventually(t, func() bool { return byID()[at+"killed"].State == runs.Dead }, 2*time.Minute, 50*time.Millisecond)
	all := byID()
	require.Len(t, all, 3)
	assert.Equal(t, runs.Running, all[at+"running"].State)
	done := all[at+"exp"]
	assert.Equal(t, runs.Done, done.State)
	assert.Equal(t, 4, done.Step)
	assert.Equal(t, 4, done.CheckpointStep)

	_, text := s.Ask(http.MethodGet, "/v1/runs/group%2Fuser%2Fexp/log?lines=1000", "")
	assert.Contains(t, text, "saved checkpoint")
	_, text = s.Ask(http.MethodGet, "/v1/runs/group%2Fuser%2Fexp/impls", "")
	assert.Contains(t, text, `"op":"multi_tensor_adam","impl_id":"default.flagos"`)
	code, text := s.Ask(http.MethodPost, "/v1/runs/group%2Fuser%2Frunning/stop", "")
	assert.Equal(t, http.StatusConflict, code)
	assert.Contains(t, text, "is trained by another process")
	require.NoError(t, running.Process.Kill())
	require.Error(t, running.Wait())
	require.NoError(t, s.Stop())
}

func TestServeRunMistakes(t *testing.T) {
	got := commandtest.Run(t, "serve", "--listen", "127.0.0.1:0", "--run", "/nonexistent")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "want a run directory, or one that holds some")
}

// The page lists runs that have ended, shows one, and compares it with others.
func TestPageOfRunsThatHaveEnded(t *testing.T) {
	primustest.Long(t, "it looks at pages in a browser")
	t.Parallel()
	b := commandtest.NewBrowser(t)
	l := commandtest.NewLab(t)
	for _, args := range [][]string{{"exp_name=small-lr", "lr=1e-4", "min_lr=1e-5"}, {"exp_name=large-lr", "lr=1e-2", "min_lr=1e-3"}} {
		got := l.Train(append(args, "train_iters=120", "eval_interval=20", "eval_iters=1")...)
		require.Zero(t, got.Code, got.Stderr)
	}
	s := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--run", l.Workspace)
	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.Base))
	b.Sees(`[...document.querySelectorAll("#runs tbody th")].map(e => e.textContent).join() === "group/user/large-lr,group/user/small-lr"`)
	b.Sees(`document.getElementById("run-name").textContent === "large-lr" && document.getElementById("run-state").textContent === "done"`)
	b.Sees(`document.getElementById("loss-legend").textContent === "trainingvalidation"`)
	b.Sees(`/saved checkpoint/.test(document.getElementById("tail").textContent)`)
	b.Sees(`document.querySelectorAll("#share meter").length > 3`)
	b.Click(`[data-run="compare group/user/small-lr"]`)
	b.Sees(`document.getElementById("loss-legend").textContent === "group/user/large-lrgroup/user/small-lr" && document.querySelectorAll("#loss .curve").length === 2`)
	b.Click(`[data-run="group/user/small-lr"]`)
	b.Sees(`document.getElementById("run-name").textContent === "small-lr"`)
	b.Picture("archive-1280", 1280, 900)
	b.Picture("archive-390", 390, 844)
	b.Sees(`["ops", "policy", "events", "save", "stop", "token"].every(id => !document.getElementById(id))`)
	b.WellBehaved()
	require.NoError(t, s.Stop())
}
