package loadertest

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/vendors/loader"
)

// Library compiles a C file without warnings into a shared library of this name, in a
// directory of the test, and returns its path. Flags follow the file.
func Library(t testing.TB, name, source string, flags ...string) string {
	t.Helper()
	if _, err := loader.Open(); errors.Is(err, loader.ErrPlatform) {
		t.Skip(err)
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	out := filepath.Join(t.TempDir(), name)
	args := []string{"-std=gnu11", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", out, filepath.FromSlash(source)}
	text, err := exec.CommandContext(t.Context(), cc, append(args, flags...)...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	return out
}
