package native_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Checkpoints have the same bytes whether or not training waits for them, and a run goes on from
// one written in the background as if it had not stopped.
func TestSavesInTheBackgroundAreTheSame(t *testing.T) {
	for name, overrides := range map[string][]string{
		"plain":                 nil,
		"an average of weights": {"ema_decay=0.9"},
		"adapters":              {"lora_rank=2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			with := func(more ...string) []string {
				return append(append([]string{"save_interval=2", "keep_last=9"}, overrides...), more...)
			}
			require.NoError(t, l.train(t.Context(), "waits", with("async_save=false")...))
			assert.NotContains(t, l.log.String(), " took=")
			require.NoError(t, l.train(t.Context(), "goes-on", with()...))
			assert.Equal(t, 5, strings.Count(l.log.String(), " took="), "all but the last")
			assert.Equal(t, contents(t, l.path("waits", "checkpoints")), contents(t, l.path("goes-on", "checkpoints")))
			assert.Len(t, l.metrics("goes-on"), 12)

			require.NoError(t, os.RemoveAll(l.path("goes-on", "checkpoints", "step-00000012")))
			require.NoError(t, l.train(t.Context(), "goes-on", with()...))
			assert.Contains(t, l.log.String(), "resuming from checkpoint")
			assert.Equal(t, l.metrics("waits"), l.metrics("goes-on"))
		})
	}
}

// contents returns the files of checkpoints, but for those that name the run and its process.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "checkpoint.json" || d.Name() == ".lock" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = string(text)
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

// onSave calls do after each checkpoint.
type onSave struct {
	backend.Observers
	do func(step int)
}

func (o onSave) CheckpointSaved(step int) { o.do(step) }

// A save that fails in the background ends the run as one that training waits for, with the same
// words.
func TestASaveFailsInTheBackground(t *testing.T) {
	failures := map[string]string{}
	for _, mode := range []string{"async_save=false", "async_save=true"} {
		l := newLab(t)
		dir := l.path("run", "checkpoints")
		l.observer = onSave{do: func(int) {
			require.NoError(t, os.Rename(dir, dir+"-away"))
			require.NoError(t, os.WriteFile(dir, nil, 0o644))
		}}
		err := l.train(t.Context(), "run", mode)
		require.Error(t, err)
		failures[mode] = regexp.MustCompile(`\S*`+regexp.QuoteMeta(l.dir)).ReplaceAllString(err.Error(), "")
		assert.FileExists(t, filepath.Join(dir+"-away", "step-00000004", "checkpoint.json"))
		assert.NotContains(t, l.log.String(), `"saved checkpoint" step=8`)
	}
	assert.Equal(t, failures["async_save=false"], failures["async_save=true"])
}
