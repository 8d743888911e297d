package durable_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever is in the place of a file, opening it does not block, and what is read has a bound.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	for kind, put := range primustest.HostileFiles() {
		dir := t.TempDir()
		path := filepath.Join(dir, "a")
		require.NoError(t, put(path))
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		defer root.Close()
		for door, open := range map[string]func() error{
			"read":    func() error { _, err := durable.ReadRegular(path, 1<<10); return err },
			"append":  func() error { return closed(durable.OpenAppend(path)) },
			"write":   func() error { return closed(durable.OpenWrite(path)) },
			"create":  func() error { return durable.Create(path, nothing) },
			"lock":    func() error { _, err := durable.Lock(path); return err },
			"of dir":  func() error { _, err := fs.ReadFile(durable.DirFS(dir), "a"); return err },
			"of root": func() error { _, err := fs.ReadFile(durable.RootFS(root), "a"); return err },
		} {
			if kind == "a terabyte of holes" && (door == "append" || door == "write" || door == "of dir" || door == "of root") {
				continue // it is a regular file, which others read as far as they need
			}
			if kind == "an empty file" && door != "create" {
				continue
			}
			err := open()
			require.Error(t, err, "%s: %s", door, kind)
			assert.ErrorContains(t, err, "a", "%s: %s", door, kind)
		}
	}
}

func closed(f *os.File, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}

func nothing(io.Writer) error { return nil }

// A device that others use is not replaced by a file.
func TestDevicesAreNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "null")
	require.NoError(t, os.Symlink("/dev/null", path))
	const want = "is a device, want a regular file"
	require.ErrorContains(t, durable.WriteFile(path, nothing), want)
	require.ErrorContains(t, durable.CheckFileWritable(path), want)
	to, err := os.Readlink(path)
	require.NoError(t, err)
	assert.Equal(t, "/dev/null", to)
}

// What a directory holds is read below it, and no link leads out of a root.
func TestTrees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	inside := filepath.Join(dir, "inside")
	require.NoError(t, os.MkdirAll(filepath.Join(inside, "d"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(inside, "d", "f"), []byte("f"), 0o600))
	require.NoError(t, os.Symlink("../secret", filepath.Join(inside, "out")))
	require.NoError(t, os.Symlink("d/f", filepath.Join(inside, "in")))
	root, err := os.OpenRoot(inside)
	require.NoError(t, err)
	defer root.Close()
	for _, tree := range []fs.FS{durable.DirFS(inside), durable.RootFS(root)} {
		outside := ""
		if tree == durable.DirFS(inside) {
			outside = "secret"
		}
		for name, want := range map[string]string{"d/f": "f", "in": "f", "out": outside, "none": "", "../secret": "", "/etc/passwd": "", "d/../../secret": ""} {
			got, err := fs.ReadFile(tree, name)
			assert.Equal(t, want, string(got), name)
			assert.Equal(t, want == "", err != nil, name)
			if err != nil {
				assert.NotContains(t, err.Error(), dir, "errors name files as the caller does")
			}
		}
		entries, err := fs.ReadDir(tree, ".")
		require.NoError(t, err)
		assert.Len(t, entries, 3)
	}
}

// swap exchanges two names again and again until the test ends.
func swap(t *testing.T, a, b string) {
	t.Helper()
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = os.Rename(a, a+".aside")
			_ = os.Rename(b, a)
			_ = os.Rename(a, b)
			_ = os.Rename(a+".aside", a)
		}
	}()
	t.Cleanup(func() {
		stop.Store(true)
		<-done
	})
}

// A directory that is exchanged for a link while files are opened leads nowhere else.
func TestDirectoriesThatBecomeLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"outside/f": "secret", "inside/d/f": "f"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink("../outside", filepath.Join(dir, "inside", "link")))
	root, err := os.OpenRoot(filepath.Join(dir, "inside"))
	require.NoError(t, err)
	defer root.Close()
	tree := durable.RootFS(root)
	swap(t, filepath.Join(dir, "inside", "d"), filepath.Join(dir, "inside", "link"))
	read := 0
	for range 5000 {
		text, err := fs.ReadFile(tree, "d/f")
		if err == nil {
			read++
			require.Equal(t, "f", string(text))
		}
	}
	assert.Positive(t, read)
}

// A file that is exchanged for a link while it is appended to or written is not left.
func TestFilesThatBecomeLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link, precious := filepath.Join(dir, "log"), filepath.Join(dir, "link"), filepath.Join(dir, "precious")
	require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Symlink("precious", link))
	swap(t, path, link)
	for range 5000 {
		for _, open := range []func(string) (*os.File, error){durable.OpenAppend, durable.OpenWrite} {
			if f, err := open(path); err == nil {
				_, err = f.WriteString("x")
				require.NoError(t, err)
				require.NoError(t, f.Close())
			}
		}
	}
	text, err := os.ReadFile(precious)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(text))
}
