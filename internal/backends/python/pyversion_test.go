package python_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, text string, elem ...string) {
	t.Helper()
	file := filepath.Join(elem...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

func TestOfPackage(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	_, err := python.OfPackage([]string{a, b}, "p/info.py")
	require.ErrorContains(t, err, filepath.Join(a, "p", "info.py")+", "+filepath.Join(b, "p", "info.py"))
	write(t, "MAJOR = 0\nMINOR = 16\nPATCH = 0\nPRE_RELEASE = 'rc0'\n__version__ = '.'.join(x)\n", b, "p", "info.py")
	got, err := python.OfPackage([]string{a, b}, "p/info.py")
	require.NoError(t, err)
	assert.Equal(t, "0.16.0rc0", got)
	write(t, "__version__ = '26.4'\n", a, "p", "info.py")
	got, err = python.OfPackage([]string{a, b}, "p/info.py")
	require.NoError(t, err)
	assert.Equal(t, "26.4", got)
	write(t, "x = 1\n", a, "p", "info.py")
	_, err = python.OfPackage([]string{a, b}, "p/info.py")
	require.ErrorContains(t, err, "it states no version")
	write(t, "x = (\n", a, "p", "info.py")
	_, err = python.OfPackage([]string{a, b}, "p/info.py")
	assert.ErrorContains(t, err, filepath.Join(a, "p", "info.py")+":")
}

func TestOfInstalled(t *testing.T) {
	env := t.TempDir()
	site := filepath.Join(env, "lib", "python3.12", "site-packages")
	write(t, "Metadata-Version: 2.4\nName: torchtitan\nVersion: 0.2.2\n\nText\n", site, "torchtitan-0.2.2.dist-info", "METADATA")
	dirs := python.SitePackages(func(name string) (string, bool) {
		return map[string]string{"VIRTUAL_ENV": env, "PYTHONPATH": "/nowhere"}[name], true
	})
	assert.Equal(t, []string{"/nowhere", site}, dirs)
	got, err := python.OfInstalled(dirs, "torchtitan")
	require.NoError(t, err)
	assert.Equal(t, "0.2.2", got)
	_, err = python.OfInstalled(dirs, "titan")
	assert.ErrorContains(t, err, `distribution "titan": it is not installed in /nowhere`)
	_, err = python.OfInstalled(nil, "titan")
	assert.EqualError(t, err, `no version of distribution "titan": PYTHONPATH and VIRTUAL_ENV name no folder to look for it in`)
}
