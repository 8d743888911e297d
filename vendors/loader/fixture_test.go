package loader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/vendors/loader"
)

// compile builds testdata/<source> into a shared library and returns its path.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	return loadertest.Library(t, "lib"+strings.TrimSuffix(source, ".c")+".so", "testdata/"+source, flags...)
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
