package report

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/stretchr/testify/require"
)

// FuzzPatchRun reads the record of a run and describes its patches, at a cost in proportion to its
// length.
func FuzzPatchRun(f *testing.F) {
	f.Add([]byte(`{"framework": "native", "versions": [{"name": "a", "version": "1"}], "patches": [{"phase": "setup", "id": "p", "result": "applied"}]}`))
	f.Add([]byte(`{"versions": null, "patches": [{"id": "\u001b[2J\n\ud800"}, null]}`))
	f.Add([]byte("null"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, rundir.DispatchName), text, 0o600))
		var r PatchRun
		var err error
		primustest.Cost(t, len(text), 1000, func() { r, err = ReadPatchRun(dir) })
		if err != nil {
			return
		}
		widest := 0
		for _, p := range r.Patches {
			widest = max(widest, len(p.ID)+len(p.Reason))
		}
		if rows := len(r.Patches); rows*widest > 1<<20 {
			return // a table has all its rows as wide as the widest
		}
		primustest.Cost(t, len(text), 10_000, func() { require.NotEmpty(t, r.Text(io.Discard)) })
	})
}
