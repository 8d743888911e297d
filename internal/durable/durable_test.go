package durable_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/durable"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWriteFileReplacesContent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, durable.WriteFile(path, text("one")))
	require.NoError(t, durable.WriteFile(path, text("two")))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "two", string(got))
	assert.Equal(t, []string{"a.json"}, names(t, filepath.Dir(path)))
}

func TestWriteFileKeepsTheOldContentOnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, durable.WriteFile(path, text("one")))
	boom := errors.New("boom")
	err := durable.WriteFile(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return boom
	})
	require.ErrorIs(t, err, boom)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "one", string(got))
	assert.Equal(t, []string{"a.json"}, names(t, filepath.Dir(path)))
}

func TestWriteFileRemovesTheTemporaryFileOnPanic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	assert.Panics(t, func() {
		_ = durable.WriteFile(filepath.Join(dir, "a"), func(io.Writer) error { panic("no") })
	})
	assert.Empty(t, names(t, dir))
}

func TestCreateRefusesAnExistingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, durable.Create(path, text("one")))
	require.ErrorIs(t, durable.Create(path, text("two")), os.ErrExist)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "one", string(got))
}

func TestCheckWritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, durable.CheckWritable(dir))
	assert.Empty(t, names(t, dir))

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	err := durable.CheckWritable(file)
	require.ErrorIs(t, err, syscall.ENOTDIR)
	assert.ErrorContains(t, err, "choose another directory")

	missing := filepath.Join(dir, "none")
	for _, err := range []error{durable.CheckWritable(missing), durable.WriteFile(filepath.Join(missing, "a"), text("one"))} {
		require.ErrorIs(t, err, os.ErrNotExist)
		assert.EqualError(t, err, "create a file in "+missing+": no such file or directory: make the directory, or choose another one")
	}
}

func TestRemoveTemps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stale := durable.TempName("step-1")
	for _, name := range []string{stale, "step-1", durable.TempName("other")} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, stale, "f"), []byte("x"), 0o644))
	removed, err := durable.RemoveTemps(dir, regexp.MustCompile("^step-"))
	require.NoError(t, err)
	assert.Equal(t, []string{stale}, removed)
	assert.Len(t, names(t, dir), 2)

	removed, err = durable.RemoveTemps(filepath.Join(dir, "absent"), regexp.MustCompile(""))
	require.NoError(t, err)
	assert.Empty(t, removed)
}

func TestReplaceDir(t *testing.T) {
	t.Parallel()
	for _, existing := range []bool{false, true} {
		parent := t.TempDir()
		target, temp := filepath.Join(parent, "d"), filepath.Join(parent, "d.tmp-1")
		if existing {
			require.NoError(t, os.Mkdir(target, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(target, "old"), nil, 0o644))
		}
		require.NoError(t, os.Mkdir(temp, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(temp, "new"), nil, 0o644))
		require.NoError(t, durable.ReplaceDir(temp, target))
		assert.Equal(t, []string{"d"}, names(t, parent), "existing %v", existing)
		assert.Equal(t, []string{"new"}, names(t, target), "existing %v", existing)
	}
}

func TestExplainHintsOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		give error
		want string
	}{
		{"full disk", syscall.ENOSPC, "free space"},
		{"quota", syscall.EDQUOT, "quota"},
		{"file size limit", syscall.EFBIG, "ulimit"},
		{"read-only", syscall.EROFS, "read-only"},
		{"permission", os.ErrPermission, "owner"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := durable.Explain(&os.PathError{Op: "write", Path: "/x", Err: tt.give})
			require.ErrorIs(t, err, tt.give)
			assert.ErrorContains(t, err, tt.want)
			assert.Equal(t, err, durable.Explain(err))
		})
	}
	plain := errors.New("plain")
	assert.Equal(t, plain, durable.Explain(plain))
	assert.NoError(t, durable.Explain(nil))
}

func TestLockKeepsASecondHolderOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), ".lock")
	first, err := durable.Lock(path)
	require.NoError(t, err)
	if first.Warning() != "" {
		t.Skip(first.Warning())
	}
	_, err = durable.Lock(path)
	var locked *durable.LockedError
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, os.Getpid(), locked.PID)
	assert.True(t, strings.HasPrefix(err.Error(), path), err.Error())

	require.NoError(t, first.Unlock())
	require.NoError(t, first.Unlock())
	second, err := durable.Lock(path)
	require.NoError(t, err)
	require.NoError(t, second.Unlock())
}

// A process that is being started has copies of all descriptors for a moment; a
// lock that was given back must not live on in them.
func TestUnlockWhileProcessesStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), ".lock")
	var stop atomic.Bool
	starts := make(chan struct{})
	go func() {
		defer close(starts)
		for !stop.Load() {
			_ = exec.Command(os.Args[0], "-test.run=^$").Run()
		}
	}()
	for range 2000 {
		l, err := durable.Lock(path)
		if !assert.NoError(t, err) {
			break
		}
		if !assert.NoError(t, l.Unlock()) {
			break
		}
	}
	stop.Store(true)
	<-starts
}

// A loss of power may leave parts of a process id and zeros, in any order.
func TestLockAfterALossOfPower(t *testing.T) {
	t.Parallel()
	for content, locks := range map[string]bool{
		"":                         true,
		"99999\n":                  true,
		"\x00\x00\x00\x00\x00\x00": true,
		"99\x00\x00\x00\x00":       true,
		"\x00\x0099\n":             true,
		"9\x009\n":                 true,
		"9999":                     true,
		"words\n":                  false,
		"99999 words\n":            false,
		"-1\n":                     false,
		"\x00\x00words":            false,
		strings.Repeat("1", 100):   false,
		strings.Repeat("\x00", 99): false,
	} {
		path := filepath.Join(t.TempDir(), ".lock")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		lock, err := durable.Lock(path)
		if !locks {
			require.ErrorContains(t, err, "want a lock file", "%q", content)
			continue
		}
		require.NoError(t, err, "%q", content)
		require.NoError(t, lock.Unlock())
	}
}

// What is locked or appended to is not another file under that name.
func TestLinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	const content = "weights of a month\n"
	require.NoError(t, os.WriteFile(precious, []byte(content), 0o600))
	soft, hard, dangling := filepath.Join(dir, "soft"), filepath.Join(dir, "hard"), filepath.Join(dir, "dangling")
	require.NoError(t, os.Symlink(precious, soft))
	require.NoError(t, os.Symlink(filepath.Join(dir, "new"), dangling))
	require.NoError(t, os.Link(precious, hard))
	for _, path := range []string{soft, dangling} {
		_, err := durable.Lock(path)
		require.ErrorContains(t, err, path+" is a symbolic link, want a regular file")
		_, err = durable.OpenAppend(path)
		require.ErrorContains(t, err, path+" is a symbolic link, want a regular file")
	}
	_, err := durable.Lock(hard)
	require.ErrorContains(t, err, "want a lock file")
	assert.NoFileExists(t, filepath.Join(dir, "new"))
	text, err := os.ReadFile(precious)
	require.NoError(t, err)
	assert.Equal(t, content, string(text))

	lock, err := durable.Lock(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("99999\n"), 0o600))
	lock, err = durable.Lock(filepath.Join(dir, "lock"))
	require.NoError(t, err, "of a process that was killed")
	require.NoError(t, lock.Unlock())
}
