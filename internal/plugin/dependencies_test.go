//go:build linux

package plugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/plugin"
)

// linked compiles a library in a directory of its own.
func linked(t *testing.T, name, text string, flags ...string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source.c")
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	return loadertest.Library(t, name, source, flags...)
}

// needs returns the flags that link a library to another one.
func needs(library string, more ...string) []string {
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(library), "lib"), ".so")
	return append([]string{"-Wl,--no-as-needed", "-L" + filepath.Dir(library), "-l" + name}, more...)
}

const (
	deepSource   = "int deep(void) { return 7; }\n"
	middleSource = "int deep(void);\nint middle(void) { return deep(); }\n"
	topSource    = "int middle(void);\nint top(void) { return middle(); }\n"
)

// Libraries that a library brings along are found as the loader finds them, and each has its sum.
func TestDependencies(t *testing.T) {
	t.Parallel()
	deep := linked(t, "libdeep.so", deepSource)
	deepDir := filepath.Dir(deep)
	tests := []struct {
		name        string
		middle, top func(middleDir string) []string // flags
	}{
		{"RUNPATH", func(string) []string { return []string{"-Wl,--enable-new-dtags,-rpath," + deepDir} },
			func(dir string) []string { return []string{"-Wl,--enable-new-dtags,-rpath," + dir} }},
		{"RPATH", func(string) []string { return []string{"-Wl,--disable-new-dtags,-rpath," + deepDir} },
			func(dir string) []string { return []string{"-Wl,--disable-new-dtags,-rpath," + dir} }},
		{"RPATH of the one above", func(string) []string { return nil },
			func(dir string) []string {
				return []string{"-Wl,--disable-new-dtags,-rpath," + dir + ",-rpath," + deepDir, "-Wl,-rpath-link," + deepDir}
			}},
		{"second directory", func(string) []string { return []string{"-Wl,--enable-new-dtags,-rpath,/nonexistent:" + deepDir} },
			func(dir string) []string { return []string{"-Wl,--enable-new-dtags,-rpath," + dir} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			middle := linked(t, "libmiddle.so", middleSource, needs(deep, tt.middle("")...)...)
			top := linked(t, "libtop.so", topSource, needs(middle, tt.top(filepath.Dir(middle))...)...)
			got, err := plugin.Inspect(top)
			require.NoError(t, err)
			require.Len(t, got.Dependencies, 2)
			for i, path := range []string{middle, deep} {
				assert.Equal(t, path, got.Dependencies[i].Path)
				assert.Len(t, got.Dependencies[i].SHA256, 64)
			}
		})
	}
}

// $ORIGIN is the directory of the library that has it, and a name with a slash is a path.
func TestDependenciesBesideTheLibrary(t *testing.T) {
	t.Parallel()
	deep := linked(t, "libdeep.so", deepSource)
	for _, rpath := range []string{"$ORIGIN/deps", "${ORIGIN}/deps"} {
		dir := filepath.Dir(linked(t, "libmiddle.so", middleSource, needs(deep, "-Wl,-rpath,"+rpath)...))
		require.NoError(t, os.Mkdir(filepath.Join(dir, "deps"), 0o755))
		text, err := os.ReadFile(deep)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "deps", "libdeep.so"), text, 0o755))
		got, err := plugin.Inspect(filepath.Join(dir, "libmiddle.so"))
		require.NoError(t, err)
		require.Len(t, got.Dependencies, 1)
		assert.Equal(t, filepath.Join(dir, "deps", "libdeep.so"), got.Dependencies[0].Path)
	}
	path := linked(t, "libmiddle.so", middleSource, "-Wl,--no-as-needed", deep)
	got, err := plugin.Inspect(path)
	require.NoError(t, err)
	require.Len(t, got.Dependencies, 1)
	assert.Equal(t, deep, got.Dependencies[0].Path)
}

// What somebody else may put into the place of a dependency is refused, as it is for the library.
func TestDependenciesAreJudged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		rpath   string // DIR is that of the dependency, PLACE another one
		prepare func(t *testing.T, dependency, place string)
		want    string
	}{
		{"writable dependency", "DIR", func(t *testing.T, dependency, _ string) {
			require.NoError(t, os.Chmod(dependency, 0o775))
		}, "libdeep.so: it is writable by its group or others"},
		{"writable directory", "DIR", func(t *testing.T, dependency, _ string) {
			require.NoError(t, os.Chmod(filepath.Dir(dependency), 0o777))
		}, "which is searched for it, is writable by its group or others"},
		{"writable directory before it", "PLACE:DIR", func(t *testing.T, _, place string) {
			require.NoError(t, os.Chmod(place, 0o775))
		}, "which is searched for it, is writable by its group or others"},
		{"directory that others may create", "PLACE/lib:DIR", func(t *testing.T, _, place string) {
			require.NoError(t, os.Chmod(place, 0o777|os.ModeSticky))
		}, "and other users may create it"},
		{"directory that nobody else may make", "PLACE/lib:DIR", func(*testing.T, string, string) {}, ""},
		{"relative directory", "lib:DIR", func(*testing.T, string, string) {}, `given "lib", which is relative to the directory that this program starts in`},
		{"empty directory", ":DIR", func(*testing.T, string, string) {}, `given "", which is relative`},
		{"another variable", "/opt/$LIB:DIR", func(*testing.T, string, string) {}, `given "/opt/$LIB", of which only $ORIGIN is understood`},
		{"dependency that is no library", "DIR", func(t *testing.T, dependency, _ string) {
			require.NoError(t, os.WriteFile(dependency, []byte("import torch"), 0o755))
		}, "libdeep.so: it is not an ELF shared library"},
		{"system's", "PLACE", func(*testing.T, string, string) {}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			deep, place := linked(t, "libdeep.so", deepSource), t.TempDir()
			rpath := strings.NewReplacer("DIR", filepath.Dir(deep), "PLACE", place).Replace(tt.rpath)
			path := linked(t, "libmiddle.so", middleSource, needs(deep, "-Wl,-rpath,"+rpath)...)
			tt.prepare(t, deep, place)
			_, err := plugin.Inspect(path)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "plugin "+path+": ")
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

// A file with holes costs nothing to make and hours to read.
func TestInspectRefusesHugeFiles(t *testing.T) {
	t.Parallel()
	path := compile(t, "fixture.c")
	require.NoError(t, os.Truncate(path, 1<<40))
	_, err := plugin.Inspect(path)
	require.ErrorContains(t, err, "it has 1099511627776 bytes, want at most 8589934592")
	got, err := plugin.Examine(path)
	require.ErrorContains(t, err, "it has 1099511627776 bytes")
	assert.Empty(t, got)
	_, err = plugin.Inspect("/dev/zero")
	require.ErrorContains(t, err, "it is a device, want a shared library")
}
