package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/checkpoint"
)

func newStore(t *testing.T, dir string) *checkpoint.Store {
	t.Helper()
	s, err := checkpoint.NewStore(dir, checkpoint.Settings{})
	require.NoError(t, err)
	return s
}

func save(t *testing.T, s *checkpoint.Store, step int64) checkpoint.Saved {
	t.Helper()
	saved, err := s.Save(step, saveState(step))
	require.NoError(t, err)
	require.Empty(t, saved.Warnings)
	return saved
}

// names lists dir without hidden files.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestSaveAndLatest(t *testing.T) {
	t.Parallel()
	s := newStore(t, filepath.Join(t.TempDir(), "a", "checkpoints"))
	_, _, err := s.Latest()
	require.ErrorIs(t, err, checkpoint.ErrNone)

	saved := save(t, s, 0)
	assert.Equal(t, filepath.Join(s.Dir(), "step-00000000"), saved.Path)
	assert.Greater(t, saved.Bytes, int64(2*weights))
	save(t, s, 100)

	c, warnings, err := s.Latest()
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, int64(100), c.Step())
	assert.Equal(t, []string{"model.safetensors", "optimizer.safetensors", "trainer_state.json"}, c.Files())
	require.NoError(t, checkState(c))
	_, err = c.Safetensors(t.Context(), "other.safetensors")
	assert.ErrorContains(t, err, `no file "other.safetensors"`)
}

func TestSaveKeepsTheNewest(t *testing.T) {
	t.Parallel()
	s, err := checkpoint.NewStore(t.TempDir(), checkpoint.Settings{Keep: 3})
	require.NoError(t, err)
	for step := int64(1); step <= 5; step++ {
		save(t, s, step)
	}
	assert.Equal(t, []string{"step-00000003", "step-00000004", "step-00000005"}, names(t, s.Dir()))
	steps, err := s.Steps()
	require.NoError(t, err)
	assert.Equal(t, []int64{5, 4, 3}, steps)
}

func TestARunThatWentBackIsNewer(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	save(t, s, 100)
	save(t, s, 200)
	save(t, s, 150)
	assert.Equal(t, []string{"step-00000150", "step-00000200"}, names(t, s.Dir()))
	c, _, err := s.Latest()
	require.NoError(t, err)
	assert.Equal(t, int64(150), c.Step())
	save(t, s, 160)
	assert.Equal(t, []string{"step-00000150", "step-00000160"}, names(t, s.Dir()))
}

func TestSaveReplacesTheSameStep(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	save(t, s, 1)
	save(t, s, 2)
	_, err := s.Save(2, func(w *checkpoint.Writer) error { return w.JSON("other.json", 1) })
	require.NoError(t, err)
	c, _, err := s.Latest()
	require.NoError(t, err)
	assert.Equal(t, []string{"other.json"}, c.Files())
	assert.Equal(t, []string{"step-00000001", "step-00000002"}, names(t, s.Dir()))
}

func TestAFailedSaveChangesNothing(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, tt := range []struct {
		name string
		save func(*checkpoint.Writer) error
		want string
	}{
		{"error of the caller", func(w *checkpoint.Writer) error {
			return errors.Join(w.JSON("a.json", 1), boom)
		}, "boom"},
		{"error that the caller drops", func(w *checkpoint.Writer) error {
			_ = w.JSON("a.json", make(chan int))
			return w.JSON("b.json", 1)
		}, "write a.json"},
		{"no files", func(*checkpoint.Writer) error { return nil }, "without files"},
		{"file twice", func(w *checkpoint.Writer) error {
			return errors.Join(w.JSON("a.json", 1), w.JSON("a.json", 1))
		}, "twice"},
		{"path as name", func(w *checkpoint.Writer) error { return w.JSON("../a.json", 1) }, `"../a.json"`},
		{"name of the manifest", func(w *checkpoint.Writer) error { return w.JSON("checkpoint.json", 1) }, "checkpoint.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, t.TempDir())
			save(t, s, 1)
			_, err := s.Save(2, tt.save)
			require.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, "save step 2")
			assert.Equal(t, []string{"step-00000001"}, names(t, s.Dir()))
		})
	}
}

func TestAPanicInSaveChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	save(t, s, 1)
	assert.Panics(t, func() { _, _ = s.Save(2, func(*checkpoint.Writer) error { panic("no") }) })
	assert.Equal(t, []string{"step-00000001"}, names(t, s.Dir()))
	save(t, s, 3)
}

func TestAWriterEndsWithItsSave(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	var kept *checkpoint.Writer
	_, err := s.Save(1, func(w *checkpoint.Writer) error {
		kept = w
		return w.JSON("a.json", 1)
	})
	require.NoError(t, err)
	require.ErrorIs(t, kept.JSON("b.json", 1), checkpoint.ErrClosed)
}

func TestSaveRemovesLeftovers(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	stale := durable.TempName("step-00000007")
	require.NoError(t, os.Mkdir(filepath.Join(s.Dir(), stale), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir(), stale, "x"), nil, 0o644))
	_, _, err := s.Latest()
	require.ErrorIs(t, err, checkpoint.ErrNone)
	saved := save(t, s, 8)
	assert.Equal(t, []string{stale}, saved.Removed)
	assert.Equal(t, []string{"step-00000008"}, names(t, s.Dir()))
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	_, err := checkpoint.NewStore("", checkpoint.Settings{})
	require.ErrorContains(t, err, "empty directory")
	_, err = checkpoint.NewStore("x", checkpoint.Settings{Keep: -1})
	require.ErrorContains(t, err, "-1")
	s := newStore(t, t.TempDir())
	_, err = s.Save(-1, saveState(0))
	require.ErrorContains(t, err, "step -1")
}

func TestTwoWritersOfOneDirectory(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	_, err := s.Save(1, func(w *checkpoint.Writer) error {
		_, err := newStore(t, s.Dir()).Save(2, saveState(2))
		var locked *durable.LockedError
		require.ErrorAs(t, err, &locked)
		return w.JSON("a.json", 1)
	})
	require.NoError(t, err)
}

// damage is a way to break a checkpoint.
type damage struct {
	name  string
	apply func(t *testing.T, dir string)
	want  []string
}

func change(file string, edit func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, file)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, edit(b), 0o644))
	}
}

func damages() []damage {
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte {
			b[(at+len(b))%len(b)] ^= 4
			return b
		}
	}
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	return []damage{
		{"model truncated", change("model.safetensors", cut), []string{"model.safetensors", "bytes"}},
		{"model longer", change("model.safetensors", func(b []byte) []byte { return append(b, 0) }), []string{"model.safetensors"}},
		{"bit flip in weights", change("model.safetensors", flip(-5)), []string{"model.safetensors", "CRC-32C"}},
		{"bit flip in a header", change("optimizer.safetensors", flip(20)), []string{"optimizer.safetensors", "CRC-32C"}},
		{"bit flip in JSON", change("trainer_state.json", flip(12)), []string{"trainer_state.json"}},
		{"file missing", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(dir, "optimizer.safetensors")))
		}, []string{"optimizer.safetensors", "no such file"}},
		{"manifest missing", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(dir, "checkpoint.json")))
		}, []string{"checkpoint.json", "no such file"}},
		{"manifest truncated", change("checkpoint.json", func(b []byte) []byte { return b[:len(b)/2] }), []string{"checkpoint.json", "JSON"}},
		{"manifest empty", change("checkpoint.json", func([]byte) []byte { return nil }), []string{"checkpoint.json"}},
		{"manifest of another step", change("checkpoint.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"step": 200`, `"step": 201`, 1))
		}), []string{"checkpoint.json", "checksum"}},
		{"space in the manifest", change("checkpoint.json", func(b []byte) []byte { return append(b, ' ') }), []string{"checkpoint.json", "checksum"}},
	}
}

func TestDamageIsFoundBeforeLoading(t *testing.T) {
	t.Parallel()
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, t.TempDir())
			save(t, s, 100)
			newest := save(t, s, 200).Path
			d.apply(t, newest)

			// Named by the user: an error, also by way of the store's directory.
			for _, open := range []func() (*checkpoint.Checkpoint, error){
				func() (*checkpoint.Checkpoint, error) { return checkpoint.Open(t.Context(), newest) },
				func() (*checkpoint.Checkpoint, error) { return checkpoint.Open(t.Context(), s.Dir()) },
				func() (*checkpoint.Checkpoint, error) { return s.Open(200) },
			} {
				_, err := open()
				var corrupt *checkpoint.CorruptError
				require.ErrorAs(t, err, &corrupt)
				for _, want := range d.want {
					assert.ErrorContains(t, err, want)
				}
			}

			// Found by itself: the one before, with a warning.
			c, warnings, err := s.Latest()
			require.NoError(t, err)
			assert.Equal(t, int64(100), c.Step())
			require.NoError(t, checkState(c))
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0], "skipped step-00000200")

			// The damaged one does not push the good one out, and stays.
			save(t, s, 150)
			save(t, s, 160)
			assert.Equal(t, []string{"step-00000150", "step-00000160", "step-00000200"}, names(t, s.Dir()))
		})
	}
}

func TestEveryFlippedBitOfAManifestIsFound(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	path := filepath.Join(save(t, s, 100).Path, "checkpoint.json")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 1 << (i % 8)
		require.NoError(t, os.WriteFile(path, bad, 0o644))
		_, err := s.Open(100)
		require.Errorf(t, err, "byte %d", i)
	}
}

func TestLatestOfDamagedCheckpointsOnly(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	require.NoError(t, os.Remove(filepath.Join(save(t, s, 100).Path, "model.safetensors")))
	_, _, err := s.Latest()
	require.ErrorContains(t, err, "none of the 1 checkpoints")
	require.NotErrorIs(t, err, checkpoint.ErrNone)
}

func TestOpenByPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newStore(t, filepath.Join(dir, "checkpoints"))
	save(t, s, 1)
	path := save(t, s, 2).Path

	c, err := checkpoint.Open(t.Context(), s.Dir())
	require.NoError(t, err)
	assert.Equal(t, int64(2), c.Step())

	renamed := filepath.Join(dir, "best")
	require.NoError(t, os.Rename(path, renamed))
	c, err = checkpoint.Open(t.Context(), renamed)
	require.NoError(t, err)
	assert.Equal(t, int64(2), c.Step())

	wrong := filepath.Join(dir, "step-00000003")
	require.NoError(t, os.Rename(renamed, wrong))
	_, err = checkpoint.Open(t.Context(), wrong)
	require.ErrorContains(t, err, "as the directory is named")

	_, err = checkpoint.Open(t.Context(), filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = checkpoint.Open(t.Context(), dir)
	require.ErrorContains(t, err, "as the directory is named", "a store whose newest is damaged")
	_, err = checkpoint.Open(t.Context(), t.TempDir())
	require.ErrorIs(t, err, checkpoint.ErrNone)
	_, err = checkpoint.Open(t.Context(), filepath.Join(wrong, "model.safetensors"))
	require.ErrorContains(t, err, "want the directory")
}

func TestJSONRefusesUnknownFields(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir())
	save(t, s, 1)
	c, _, err := s.Latest()
	require.NoError(t, err)
	var partial struct {
		Step int64 `json:"step"`
	}
	require.ErrorContains(t, c.JSON("trainer_state.json", &partial), "position")
}
