package pyreader_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever is in the place of files of a framework, reading its source neither waits nor reads for
// ever.
func TestHostileFilesOfFrameworks(t *testing.T) {
	t.Parallel()
	repository := t.TempDir()
	tree := func(root string, files map[string]string) {
		for name, text := range files {
			path := filepath.Join(root, filepath.FromSlash(name))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
	}
	tree(repository, map[string]string{
		"primus/core/patches/__init__.py":              "def register_patch(*a, **k): pass\n",
		"primus/backends/megatron/patches/__init__.py": head + "def C(ctx): return True\n",
	})
	checkout, err := pyreader.Open(t.Context(), repository)
	require.NoError(t, err)
	kinds := primustest.HostileFiles()
	kinds["a link out of the tree"] = func(path string) error { return os.Symlink("/etc/passwd", path) }
	for kind, put := range kinds {
		framework := t.TempDir()
		tree(framework, map[string]string{"megatron/__init__.py": "", "megatron/core/__init__.py": "y = 1\n", "megatron/training/__init__.py": ""})
		for _, name := range []string{"megatron/core/package_info.py", "megatron/core/other.py", "megatron/training/arguments.py"} {
			require.NoError(t, put(filepath.Join(framework, filepath.FromSlash(name))))
		}
		_, err := pyreader.FrameworkVersion(framework, "megatron")
		require.Error(t, err, kind)
		_, err = pyreader.MegatronDefaults(t.Context(), framework)
		require.Error(t, err, kind)
		findings, err := checkout.Check(t.Context(), framework) // looks through all files for a name that has moved
		require.NoError(t, err, kind)
		require.NotEmpty(t, findings, kind)
		assert.Equal(t, "no x in megatron/core/__init__.py", findings[0].Detail, kind)
	}
}
