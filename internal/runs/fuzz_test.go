package runs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// Whatever the files of a run hold, the run can be shown: as JSON, with steps in order.
func FuzzFilesOfARun(f *testing.F) {
	f.Add([]byte(`{"name": "exp", "state": "running", "pid": 1, "steps": 4, "impls": [{"op": "rope"}]}`), []byte("{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":1}\n"), []byte("a\nb\n"))
	f.Add([]byte(`{"started": "0001-01-01T00:00:00Z", "ended": null, "checkpoint_saved": "9999-12-31T23:59:59Z"}`), []byte("{\"step\":-9223372036854775808}\n{\"step\":9223372036854775807,\"loss\":1e308}\n"), []byte{0xff})
	f.Add([]byte(`{"state": 7}`), []byte("{\"step\":"), []byte{})
	f.Fuzz(func(t *testing.T, record, metrics, log []byte) {
		defer primustest.Measured(t, len(record)+len(metrics)+len(log))()
		dir := filepath.Join(t.TempDir(), "exp")
		require.NoError(t, os.Mkdir(dir, 0o755))
		for name, text := range map[string][]byte{"run.json": record, "metrics.jsonl": metrics, "train.log": log} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
		a := open(t, dir)
		all := a.Runs()
		require.Len(t, all, 1)
		points, ok := a.Curve("exp", 0)
		assert.True(t, ok)
		for i := 1; i < len(points); i++ {
			assert.Less(t, points[i-1].Step, points[i].Step)
		}
		used, ok := a.Uses("exp")
		assert.True(t, ok)
		for _, v := range []any{all, points, used} {
			_, err := json.Marshal(v)
			assert.NoError(t, err)
		}
		text, ok := a.Log("exp", 3)
		assert.True(t, ok)
		assert.LessOrEqual(t, len(text), len(log))
	})
}
