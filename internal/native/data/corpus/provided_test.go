package corpus_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The data of the examples is there without the source tree, and a file of that name comes first.
func TestProvided(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	const name = "examples/native/data/chat.jsonl"
	want, err := fs.ReadFile(primus.Files(), name)
	require.NoError(t, err)
	path, err := corpus.Provided("./" + name)
	require.NoError(t, err)
	for range 2 {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(text))
		require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o600))
		path, err = corpus.Provided(name)
		require.NoError(t, err)
	}
	c, err := corpus.Find(t.Context(), corpus.Settings{Path: name})
	require.NoError(t, err)
	assert.Equal(t, path, c.Report().Source)

	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte("mine"), 0o600))
	for _, given := range []string{name, "docs", "nothing", "../x"} {
		path, err := corpus.Provided(given)
		require.NoError(t, err)
		assert.Equal(t, given, path)
	}
}

// A cache that cannot be written is an error that names it.
func TestProvidedNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("XDG_CACHE_HOME", file)
	t.Setenv("HOME", file)
	t.Chdir(t.TempDir())
	_, err := corpus.Provided("examples/native/data/chat.jsonl")
	require.ErrorContains(t, err, "unpack examples/native/data/chat.jsonl, which comes with the program")
}
