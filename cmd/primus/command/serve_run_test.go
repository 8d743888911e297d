package command_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/runtime/runs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Runs are shown from their files when they have ended, were killed, or go on in another process.
func TestServeRunsFromTheirFiles(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	got := l.train("train_iters=4")
	require.Zero(t, got.code, got.stderr)
	running, _ := l.startRun("running", "127.0.0.1:0", "train_iters=1000000", "--linger", "0s")
	killed, _ := l.startRun("killed", "127.0.0.1:0", "train_iters=1000000", "--linger", "0s")
	s := startServing(t, "serve", "--listen", "127.0.0.1:0", "--run", l.workspace, "--token-file", tokenFile(t))
	byID := func() map[string]runs.Run {
		_, text := s.ask(http.MethodGet, "/v1/runs", "")
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
	}, time.Minute, 50*time.Millisecond)
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())
	require.Eventually(t, func() bool { return byID()[at+"killed"].State == runs.Dead }, time.Minute, 50*time.Millisecond)
	all := byID()
	require.Len(t, all, 3)
	assert.Equal(t, runs.Running, all[at+"running"].State)
	done := all[at+"exp"]
	assert.Equal(t, runs.Done, done.State)
	assert.Equal(t, 4, done.Step)
	assert.Equal(t, 4, done.CheckpointStep)

	_, text := s.ask(http.MethodGet, "/v1/runs/group%2Fuser%2Fexp/log?lines=1000", "")
	assert.Contains(t, text, "saved checkpoint")
	_, text = s.ask(http.MethodGet, "/v1/runs/group%2Fuser%2Fexp/impls", "")
	assert.Contains(t, text, `"op":"multi_tensor_adam","impl_id":"default.flagos"`)
	code, text := s.ask(http.MethodPost, "/v1/runs/group%2Fuser%2Frunning/stop", "")
	assert.Equal(t, http.StatusConflict, code)
	assert.Contains(t, text, "is trained by another process")
	require.NoError(t, running.Process.Kill())
	require.Error(t, running.Wait())
	s.cancel()
	require.NoError(t, <-s.ended)
}

func TestServeRunMistakes(t *testing.T) {
	got := primus(t, "serve", "--listen", "127.0.0.1:0", "--run", "/nonexistent")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "want a run directory, or one that holds some")
}

// The page lists runs that have ended, shows one, and compares it with others.
func TestPageOfRunsThatHaveEnded(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	l := newLab(t)
	for _, args := range [][]string{{"exp_name=small-lr", "lr=1e-4", "min_lr=1e-5"}, {"exp_name=large-lr", "lr=1e-2", "min_lr=1e-3"}} {
		got := l.train(append(args, "train_iters=120", "eval_interval=20", "eval_iters=1")...)
		require.Zero(t, got.code, got.stderr)
	}
	s := startServing(t, "serve", "--listen", "127.0.0.1:0", "--run", l.workspace)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.base))
	b.sees(`[...document.querySelectorAll("#runs tbody th")].map(e => e.textContent).join() === "group/user/large-lr,group/user/small-lr"`)
	b.sees(`document.getElementById("run-name").textContent === "large-lr" && document.getElementById("run-state").textContent === "done"`)
	b.sees(`document.getElementById("loss-legend").textContent === "trainingvalidation"`)
	b.sees(`/saved checkpoint/.test(document.getElementById("tail").textContent)`)
	b.sees(`document.querySelectorAll("#share meter").length > 3`)
	b.click(`[data-run="compare group/user/small-lr"]`)
	b.sees(`document.getElementById("loss-legend").textContent === "group/user/large-lrgroup/user/small-lr" && document.querySelectorAll("#loss .curve").length === 2`)
	b.click(`[data-run="group/user/small-lr"]`)
	b.sees(`document.getElementById("run-name").textContent === "small-lr"`)
	b.picture("archive-1280", 1280, 900)
	b.picture("archive-390", 390, 844)
	b.sees(`["ops", "policy", "events", "save", "stop", "token"].every(id => !document.getElementById(id))`)
	b.wellBehaved()
	s.cancel()
	require.NoError(t, <-s.ended)
}
