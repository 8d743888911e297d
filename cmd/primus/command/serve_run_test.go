package command_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/runs"
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
