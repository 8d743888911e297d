package checkpoint_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replace puts a symbolic link in the place of a path.
func replace(t *testing.T, path, target string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.Symlink(target, path))
}

// A checkpoint that cannot be read now, or that a newer version has written, is not taken for a
// damaged one: a run does not go back behind it, and no save removes it.
func TestUnreadableIsNotDamaged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		attack func(t *testing.T, path string)
		check  func(t *testing.T, err error)
	}{
		{"link to itself", func(t *testing.T, path string) { t.Helper(); replace(t, path, path) }, unreadable(syscall.ELOOP)},
		{"manifest that links to itself", func(t *testing.T, path string) {
			t.Helper()
			replace(t, filepath.Join(path, "checkpoint.json"), "checkpoint.json")
		}, unreadable(syscall.ELOOP)},
		{"weights that link to themselves", func(t *testing.T, path string) {
			t.Helper()
			replace(t, filepath.Join(path, "model.safetensors"), "model.safetensors")
		}, unreadable(syscall.ELOOP)},
		{"disk that cannot be read", func(t *testing.T, path string) {
			t.Helper()
			replace(t, filepath.Join(path, "checkpoint.json"), "/proc/self/mem")
		}, unreadable(syscall.EIO)},
		{"newer version", func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, checkpoint.Rewrite(path, 4, "a", 300))
		}, func(t *testing.T, err error) {
			t.Helper()
			var version *checkpoint.VersionError
			require.ErrorAs(t, err, &version)
			assert.Equal(t, 4, version.Got)
			assert.ErrorContains(t, err, "use the program that wrote it")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newRun(t, t.TempDir(), "a")
			save(t, s, 200)
			path := save(t, s, 300).Path
			tt.attack(t, path)
			_, err := s.Open(300)
			tt.check(t, err)
			_, _, err = s.Latest()
			tt.check(t, err)
			for step := int64(400); step < 404; step++ {
				save(t, s, step)
			}
			assert.Equal(t, []string{"step-00000300", "step-00000402", "step-00000403"}, names(t, s.Dir()))
			c, warnings, err := s.Latest()
			require.NoError(t, err, "a newer one is intact")
			assert.Empty(t, warnings)
			assert.Equal(t, int64(403), c.Step())
		})
	}
}

func unreadable(cause error) func(*testing.T, error) {
	return func(t *testing.T, err error) {
		t.Helper()
		var unreadable *checkpoint.UnreadableError
		require.ErrorAs(t, err, &unreadable)
		require.ErrorIs(t, err, cause)
	}
}

// A named pipe, a directory or a device in the place of a file is damage, and nobody waits for it.
func TestIrregularFiles(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"checkpoint.json", "model.safetensors", "trainer_state.json"} {
		for kind, put := range map[string]func(path string) error{
			"a named pipe": func(path string) error { return syscall.Mkfifo(path, 0o644) },
			"a directory":  func(path string) error { return os.Mkdir(path, 0o755) },
			"a device":     func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			t.Run(file+" is "+kind, func(t *testing.T) {
				t.Parallel()
				s := newRun(t, t.TempDir(), "a")
				save(t, s, 100)
				path := save(t, s, 200).Path
				require.NoError(t, os.Remove(filepath.Join(path, file)))
				require.NoError(t, put(filepath.Join(path, file)))
				_, err := checkpoint.Open(t.Context(), path)
				var corrupt *checkpoint.CorruptError
				require.ErrorAs(t, err, &corrupt)
				assert.Equal(t, file, corrupt.File)
				assert.Equal(t, kind, corrupt.Got)
				c, _, err := s.Latest()
				require.NoError(t, err)
				assert.Equal(t, int64(100), c.Step())
			})
		}
	}
	s := newRun(t, t.TempDir(), "a")
	require.NoError(t, syscall.Mkfifo(filepath.Join(s.Dir(), ".lock"), 0o644))
	_, err := s.Acquire()
	require.ErrorContains(t, err, "a named pipe")
}
