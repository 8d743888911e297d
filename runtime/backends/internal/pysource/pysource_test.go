package pysource_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/runtime/backends/internal/pysource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConstants(t *testing.T) {
	got := pysource.Constants(strings.Join([]string{
		"# MAJOR = 9", "MAJOR = 0", "MINOR=16  # sixteen", "PATCH: int = 1_0", "PRE_RELEASE = 'rc0'", `__version__ = "1.0#2"  # x`,
		"  INDENTED = 1", "COMPUTED = MAJOR + 1", `ESCAPED = "a\n"`, "MAJOR == 3", "EMPTY = ''", "LAST = 1\r", "LAST = 2",
	}, "\n"))
	assert.Equal(t, map[string]string{
		"MAJOR": "0", "MINOR": "16", "PATCH": "10", "PRE_RELEASE": "rc0", "__version__": "1.0#2", "EMPTY": "", "LAST": "2",
	}, got)
}

func write(t *testing.T, text string, elem ...string) {
	t.Helper()
	file := filepath.Join(elem...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

func TestPackageVersion(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	_, err := pysource.PackageVersion([]string{a, b}, "p/info.py")
	require.ErrorContains(t, err, filepath.Join(a, "p", "info.py")+", "+filepath.Join(b, "p", "info.py"))
	write(t, "MAJOR = 0\nMINOR = 16\nPATCH = 0\nPRE_RELEASE = 'rc0'\n__version__ = '.'.join(x)\n", b, "p", "info.py")
	got, err := pysource.PackageVersion([]string{a, b}, "p/info.py")
	require.NoError(t, err)
	assert.Equal(t, "0.16.0rc0", got)
	write(t, "__version__ = '26.4'\n", a, "p", "info.py")
	got, err = pysource.PackageVersion([]string{a, b}, "p/info.py")
	require.NoError(t, err)
	assert.Equal(t, "26.4", got)
	write(t, "x = 1\n", a, "p", "info.py")
	_, err = pysource.PackageVersion([]string{a, b}, "p/info.py")
	assert.ErrorContains(t, err, "it states no version")
}

func TestInstalledVersion(t *testing.T) {
	env := t.TempDir()
	site := filepath.Join(env, "lib", "python3.12", "site-packages")
	write(t, "Metadata-Version: 2.4\nName: torchtitan\nVersion: 0.2.2\n\nText\n", site, "torchtitan-0.2.2.dist-info", "METADATA")
	dirs := pysource.SitePackages(func(name string) (string, bool) {
		return map[string]string{"VIRTUAL_ENV": env, "PYTHONPATH": "/nowhere"}[name], true
	})
	assert.Equal(t, []string{"/nowhere", site}, dirs)
	got, err := pysource.InstalledVersion(dirs, "torchtitan")
	require.NoError(t, err)
	assert.Equal(t, "0.2.2", got)
	_, err = pysource.InstalledVersion(dirs, "titan")
	assert.ErrorContains(t, err, `distribution "titan" is not installed in /nowhere`)
}

func FuzzConstants(f *testing.F) {
	f.Add("MAJOR = 0\nX: str = 'a'  # b\n")
	f.Add("= = '\n\"")
	f.Add("A = 1__0#\n")
	f.Fuzz(func(t *testing.T, source string) {
		for name, value := range pysource.Constants(source) {
			if name == "" || strings.ContainsAny(value, "\r\n") {
				t.Fatalf("%q = %q", name, value)
			}
		}
	})
}
