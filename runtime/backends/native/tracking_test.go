package native_test

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that cannot be reached is a warning and a line at the end; files for wandb lie in the
// run directory and go aside with an earlier run.
func TestTracking(t *testing.T) {
	l := newLab(t)
	seen := &ended{}
	l.observer = seen
	gone := httptest.NewServer(nil)
	gone.Close()
	args := []string{"train_iters=3", "mlflow_tracking_uri=" + gone.URL, "mlflow_run_name=r", "wandb_project=p"}
	require.NoError(t, l.train(t.Context(), "run", args...))
	require.Len(t, seen.result.Tracking, 2)
	assert.Contains(t, seen.result.Tracking[0], "mlflow "+gone.URL+" was not reached, and ")
	assert.Contains(t, seen.result.Tracking[1], "wandb sync "+l.path("run", "wandb"))
	assert.Contains(t, l.log.String(), "does not take metrics, which wait until it does; training goes on")
	require.NoError(t, l.train(t.Context(), "run", append([]string{"load=none", "disable_wandb=true", "disable_mlflow=true"}, args...)...))
	assert.Empty(t, seen.result.Tracking)
	aside, err := filepath.Glob(l.path("run", "previous", "1", "wandb", "offline-run-*", "run-*.wandb"))
	require.NoError(t, err)
	assert.Len(t, aside, 1)
	assert.NoDirExists(t, l.path("run", "wandb"))
	require.ErrorContains(t, l.train(t.Context(), "other", "mlflow_tracking_uri=databricks"), "has to be http://HOST:PORT")
}
