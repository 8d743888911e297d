package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newRun(t *testing.T, dir, run string) *checkpoint.Store {
	t.Helper()
	s, err := checkpoint.NewStore(dir, checkpoint.Settings{Run: run})
	require.NoError(t, err)
	return s
}

func write(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o644))
}

// A save removes the run's own older checkpoints, and nothing else.
func TestOnlyOwnCheckpointsAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save(t, newRun(t, dir, "a"), 1)
	save(t, newRun(t, dir, "a"), 2)
	require.NoError(t, checkpoint.Rewrite(save(t, newRun(t, dir, "a"), 3).Path, 1, "", 3))
	elsewhere := save(t, newRun(t, t.TempDir(), "b"), 4).Path
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "step-00000004")))
	write(t, filepath.Join(dir, "step-00000005", "precious.bin"))
	write(t, filepath.Join(dir, "step-00000006"))
	write(t, filepath.Join(dir, "step-00000007.tmp-Mine", "precious.bin"))
	write(t, filepath.Join(dir, "notes.txt"))
	others := names(t, dir)

	s := newRun(t, dir, "b")
	for step := int64(10); step < 15; step++ {
		save(t, s, step)
	}
	assert.ElementsMatch(t, append(others, "step-00000013", "step-00000014"), names(t, dir))
	c, warnings, err := s.Latest()
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, int64(14), c.Step())
	assert.Equal(t, "b", c.Run())
}

// What has the name of a new checkpoint and is not the run's own is moved, not replaced.
func TestWhatIsInTheWayIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newRun(t, dir, "b")
	write(t, filepath.Join(dir, "step-00000001", "precious.bin"))
	write(t, filepath.Join(dir, "step-00000002"))
	save(t, newRun(t, dir, "a"), 3)
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "step-00000004")))
	previous := func(n string, step string) string { return filepath.Join(dir, checkpoint.PreviousName, n, step) }
	for step, name := range []string{"step-00000001", "step-00000002", "step-00000003", "step-00000004"} {
		assert.Equal(t, []string{previous("1", name)}, save(t, s, int64(step+1)).Kept)
	}
	assert.FileExists(t, filepath.Join(previous("1", "step-00000001"), "precious.bin"))
	assert.FileExists(t, previous("1", "step-00000002"))
	_, err := checkpoint.Open(t.Context(), previous("1", "step-00000003"))
	require.NoError(t, err)

	save(t, newRun(t, dir, "a"), 4)
	assert.DirExists(t, previous("2", "step-00000004"))
	assert.Empty(t, save(t, newRun(t, dir, "a"), 4).Kept, "the run's own is replaced")
}

// A run takes no other run's checkpoints for its own.
func TestCheckpointsOfAnotherRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save(t, newRun(t, dir, "a"), 100)
	_, _, err := newRun(t, dir, "b").Latest()
	var owner *checkpoint.OwnerError
	require.ErrorAs(t, err, &owner)
	assert.Equal(t, checkpoint.OwnerError{Dir: dir, Run: "a", Own: "b"}, *owner)

	save(t, newRun(t, dir, "b"), 50)
	save(t, newRun(t, dir, "a"), 200)
	c, _, err := newRun(t, dir, "b").Latest()
	require.NoError(t, err)
	assert.Equal(t, int64(50), c.Step())

	require.NoError(t, checkpoint.Rewrite(save(t, newRun(t, dir, "b"), 60).Path, 1, "", 60))
	c, _, err = newRun(t, dir, "c").Latest()
	require.NoError(t, err, "one of an older version is anybody's")
	assert.Equal(t, int64(60), c.Step())
}

// Two processes cannot have one directory at the same time.
func TestAcquire(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	first, second := newRun(t, dir, "a"), newRun(t, dir, "b")
	warning, err := first.Acquire()
	require.NoError(t, err)
	assert.Empty(t, warning)
	_, err = second.Acquire()
	var locked *durable.LockedError
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, os.Getpid(), locked.PID)
	_, err = second.Save(1, saveState(1))
	require.ErrorAs(t, err, &locked)
	save(t, first, 1)
	save(t, first, 2)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close())
	_, err = second.Acquire()
	require.NoError(t, err)
	save(t, second, 1)
	require.NoError(t, second.Close())
}

// A path that nothing can be saved at is found at once.
func TestAcquireWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file)
	for _, dir := range []string{file, filepath.Join(file, "checkpoints"), "/proc/self/checkpoints", "/dev/null", string([]byte{'a', 0})} {
		_, err := newRun(t, dir, "a").Acquire()
		require.ErrorContains(t, err, "nothing can be saved in "+dir)
	}
	assert.FileExists(t, file)
}
