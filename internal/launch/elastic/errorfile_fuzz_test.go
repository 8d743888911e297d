package elastic_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/launch/elastic"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzErrorFile reads what ranks leave of their errors: no content is worse than an error, and one
// that is read is no longer than it.
func FuzzErrorFile(f *testing.F) {
	f.Add([]byte(`{"message": {"message": "a", "extraInfo": {"timestamp": "1", "follows": "true", "py_callstack": ""}}}`))
	f.Add([]byte(`{"message": "a"}`))
	f.Add([]byte(`{"message": {"message": "\ud800\u001b[2J", "extraInfo": {"usage": "", "hung": "x"}}}`))
	f.Add([]byte("null"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		file := filepath.Join(dir, "error.json")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		e, err := elastic.ReadError(file)
		if err != nil {
			require.Empty(t, e)
			return
		}
		require.LessOrEqual(t, len(e.Message), 3*len(text))
	})
}

// A file that is none, or has no end, is an error.
func TestErrorFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	_, err := elastic.ReadError(dir)
	require.Error(t, err)
	_, err = elastic.ReadError(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<40))
	_, err = elastic.ReadError(large)
	require.ErrorContains(t, err, "16777216")
}
