package native_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// files returns the paths of the files below dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// A named pipe in the place of a file of a run is told or replaced; nobody waits for it, and
// nothing that was trained is lost.
func TestNamedPipesInTheRunDirectory(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=4", "disable_tensorboard=false"))
	want := []string{"text.go"}
	for _, path := range append(files(t, l.path("run")), files(t, filepath.Join(l.dir, "cache"))...) {
		name, err := filepath.Rel(l.dir, path)
		require.NoError(t, err)
		want = append(want, name)
	}
	require.Greater(t, len(want), 16)
	for _, name := range want {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			l := newLab(t)
			require.NoError(t, l.train(t.Context(), "run", "train_iters=4"))
			path := filepath.Join(l.dir, name)
			if strings.HasPrefix(name, "cache") {
				path = files(t, filepath.Join(l.dir, "cache"))[0]
			}
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, syscall.Mkfifo(path, 0o644))
			if err := l.train(t.Context(), "run", "train_iters=6"); err != nil {
				assert.ErrorContains(t, err, filepath.Base(path))
				assert.ErrorContains(t, err, "named pipe")
				return
			}
			info, err := os.Lstat(path)
			pipe := err == nil && info.Mode()&fs.ModeNamedPipe != 0
			assert.Equal(t, strings.Contains(path, "checkpoints/step-") || strings.Contains(path, "tensorboard/"), pipe,
				"what the run writes is replaced, and what it cannot use stays")
			assert.Len(t, l.metrics("run"), 6)
		})
	}
}

// Damaged, unreadable and newer checkpoints have different outcomes, and none of them is removed.
func TestCheckpointsThatCannotBeUsed(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	type outcome int
	const (
		damaged outcome = iota
		unreadable
		newer
	)
	cut := func(name string) func(string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, name), 3) }
	}
	link := func(name, to string) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return os.Symlink(to, path)
		}
	}
	for name, tt := range map[string]struct {
		attack func(dir string) error
		want   outcome
	}{
		"a manifest that was cut":                  {cut("checkpoint.json"), damaged},
		"weights that were cut":                    {cut("model.safetensors"), damaged},
		"a state that was cut":                     {cut("trainer_state.json"), damaged},
		"a file that is missing":                   {func(dir string) error { return os.Remove(filepath.Join(dir, "optimizer.safetensors")) }, damaged},
		"a directory that links to itself":         {link("", "step-00000006"), unreadable},
		"a manifest that links to itself":          {link("checkpoint.json", "checkpoint.json"), unreadable},
		"a configuration that links to itself":     {link("config.json", "config.json"), unreadable},
		"a manifest that cannot be read (EIO)":     {link("checkpoint.json", "/proc/self/mem"), unreadable},
		"a manifest of a newer version":            {func(dir string) error { return rewrite(dir, `"version": 3`, `"version": 9`) }, newer},
		"an entry of the manifest that is unknown": {func(dir string) error { return rewrite(dir, `"step": 6`, `"step": 6, "x": 1`) }, damaged},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			require.NoError(t, l.train(t.Context(), "whole", "save_interval=3", "lr_decay_iters=9", "train_iters=9"))
			require.NoError(t, l.train(t.Context(), "run", "save_interval=3", "lr_decay_iters=9", "train_iters=6"))
			newest := l.path("run", "checkpoints", "step-00000006")
			require.NoError(t, tt.attack(newest))
			left := snapshot(t, l.path("run", "checkpoints"))
			err := l.train(t.Context(), "run", "save_interval=3", "lr_decay_iters=9", "train_iters=9")
			switch tt.want {
			case damaged:
				require.NoError(t, err)
				assert.Contains(t, l.log.String(), "skipped step-00000006")
				assert.Contains(t, l.log.String(), "is damaged")
				assert.Equal(t, l.metrics("whole"), l.metrics("run"), "the run went on from step 3")
				kept := snapshot(t, l.path("run", "checkpoints", "previous", "1", "step-00000006"))
				for path, text := range kept {
					assert.Equal(t, left[filepath.Join("step-00000006", path)], text, path)
				}
				assert.NotEmpty(t, kept)
				return
			case unreadable:
				var e *checkpoint.UnreadableError
				require.ErrorAs(t, err, &e)
				assert.ErrorContains(t, err, "cannot be read now, which does not mean that it is damaged")
			case newer:
				var e *checkpoint.VersionError
				require.ErrorAs(t, err, &e)
				assert.ErrorContains(t, err, "use the program that wrote it")
			}
			assert.Equal(t, left, snapshot(t, l.path("run", "checkpoints")))
			require.ErrorIs(t, l.interruptAt("run", 4, "save_interval=3", "lr_decay_iters=9", "load=none"), backend.ErrInterrupted)
			assert.Equal(t, left, snapshot(t, l.path("run", "previous", "1", "checkpoints")), "a run that starts over keeps all of them")
		})
	}
}

// rewrite replaces a part of the manifest of a checkpoint.
func rewrite(dir, from, to string) error {
	path := filepath.Join(dir, "checkpoint.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o644)
}

// snapshot returns the content of the files below dir, and where links lead.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, path := range files(t, dir) {
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		if to, err := os.Readlink(path); err == nil {
			found[name] = "-> " + to
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if name != ".lock" {
			found[name] = string(text)
		}
	}
	return found
}
