package commandtest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FreeAddress returns a HOST:PORT that nothing listens on.
func FreeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// Unpack extracts an archive and returns its directory.
func Unpack(t *testing.T, archive string) string {
	t.Helper()
	file, err := os.Open(archive)
	require.NoError(t, err)
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	require.NoError(t, err)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for members := tar.NewReader(compressed); ; {
		header, err := members.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		if header.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(members)
			require.NoError(t, err)
			require.NoError(t, root.MkdirAll(filepath.Dir(header.Name), 0o755))
			require.NoError(t, root.WriteFile(header.Name, text, 0o644))
		}
	}
}

// PolicyIn writes a policy file.
func PolicyIn(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// Files returns every path below a directory.
func Files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		found = append(found, path)
		return err
	}))
	return found
}

// Tools skips a test where one of these programs is missing.
func Tools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
}

// Root returns the directory of the module, above the working directory.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, dir, parent, "no go.mod above the working directory")
		dir = parent
	}
}
