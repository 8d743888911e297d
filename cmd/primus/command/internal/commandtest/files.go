package commandtest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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
