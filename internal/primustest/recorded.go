package primustest

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Recorded returns the path of recorded behaviour of an ancestor, below the directory fixtures. It
// skips the test if that is not there. PRIMUS_SHARED names the directory with fixtures; without it,
// it is shared beside the module.
func Recorded(t testing.TB, elem ...string) string {
	t.Helper()
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join(ModuleRoot(t), "..", "shared")
	}
	path := filepath.Join(append([]string{shared, "fixtures"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("recorded fixtures are not here (set PRIMUS_SHARED): %v", err)
	}
	return path
}

// ModuleRoot returns the directory of go.mod, above the package under test.
func ModuleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no go.mod above the package under test")
		dir = parent
	}
}

// maxLine bounds the lines of files with recorded cases.
const maxLine = 1 << 24

// EachLine calls f for the lines of a file, which has at least one.
func EachLine(t testing.TB, path string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	n := 0
	for ; lines.Scan(); n++ {
		f(lines.Bytes())
	}
	require.NoError(t, lines.Err())
	require.Positive(t, n, "%s is empty", path)
}

// Unpack extracts the regular files of an archive in a .tar.gz file and returns their directory.
func Unpack(t testing.TB, archive string) string {
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
