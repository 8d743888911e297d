package loader_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/vendors/loader"
)

// compile builds testdata/<source> into a shared library and returns its path.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	if _, err := loader.Open(); err == loader.ErrPlatform {
		t.Skip(err)
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	out := filepath.Join(t.TempDir(), "lib"+source[:len(source)-len(".c")]+".so")
	args := append([]string{"-shared", "-fPIC", "-O1", "-o", out, filepath.Join("testdata", source)}, flags...)
	text, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	return out
}

func openFixture(t *testing.T) *loader.Library {
	t.Helper()
	lib, err := loader.Open(compile(t, "fixture.c"))
	require.NoError(t, err)
	return lib
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
