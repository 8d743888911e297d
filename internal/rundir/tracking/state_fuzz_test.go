package tracking

import (
	"os"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/stretchr/testify/require"
)

// FuzzState reads what a run has left of its trackers: it is read or an error that names the file.
func FuzzState(f *testing.F) {
	for _, text := range []string{`{"mlflow_tracking_uri": "http://a", "mlflow_run_id": "b"}`, `{"mlflow_run_id": 1}`, "null", "[]", ""} {
		f.Add([]byte(text))
	}
	dir, err := rundir.Open(rundir.Location{Workspace: f.TempDir(), WorkGroup: "g", UserName: "u", ExpName: "e"})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, dir.Close()) })
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(dir.Path(StateName), text, 0o600))
		var s state
		var err error
		primustest.Cost(t, len(text), 100, func() { s, err = readState(dir) })
		if err != nil {
			require.ErrorContains(t, err, StateName)
			require.Empty(t, s)
		}
	})
}
