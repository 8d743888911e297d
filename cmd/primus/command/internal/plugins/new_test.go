package plugins_test

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPluginsNewLibraries(t *testing.T) {
	primustest.Long(t, "it builds and checks plugins")
	tests := []struct {
		lang, library string // "" where the guide for authors checks it
		tools, build  []string
	}{
		{"c", "", []string{"make", "cc"}, []string{"make", "CFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror"}},
		{"cpp", "libacme.so", []string{"make", "c++"}, []string{"make", "CXXFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror"}},
		{"rust", "target/release/libacme_ops.so", []string{"cargo"}, []string{"cargo", "build", "--release", "--offline"}},
	}
	for _, tt := range tests {
		t.Run(tt.lang, func(t *testing.T) {
			commandtest.Tools(t, tt.tools...)
			if text, err := exec.Command(tt.build[0], "--version").CombinedOutput(); err != nil { // a rustup without a toolchain
				t.Skipf("%s --version: %v: %s", tt.build[0], err, text)
			}
			dir := filepath.Join(t.TempDir(), "new")
			got := commandtest.Run(t, "plugins", "new", "--lang", tt.lang, "acme", "--dir", dir)
			require.Zero(t, got.Code, got.Stderr)
			assert.Contains(t, got.Out, "primus plugins check")
			cmd := exec.Command(tt.build[0], tt.build[1:]...)
			cmd.Dir = dir
			text, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", text)
			if tt.library == "" {
				return
			}
			report, got := check(t, filepath.Join(dir, tt.library))
			assert.Zero(t, got.Code, got.Out)
			assert.True(t, report.Passed)
			assert.Equal(t, "acme_ops", report.Name)
			assert.Empty(t, report.Notes)
		})
	}
}

// The C and C++ projects link functions of the mathematical library, and are built again when their
// Makefile changes.
func TestPluginsNewMakefiles(t *testing.T) {
	for lang, flags := range map[string]string{"c": "CFLAGS", "cpp": "CXXFLAGS"} {
		t.Run(lang, func(t *testing.T) {
			commandtest.Tools(t, "make", "cc", "c++")
			dir := filepath.Join(t.TempDir(), "new")
			got := commandtest.Run(t, "plugins", "new", "--lang", lang, "acme", "--dir", dir)
			require.Zero(t, got.Code, got.Stderr)
			file := filepath.Join(dir, "acme."+lang)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			changed := strings.Replace(string(text), "a[i] + b[i]", "expf(a[i]) + b[i]", 1)
			require.NotEqual(t, string(text), changed)
			require.NoError(t, os.WriteFile(file, []byte("#include <math.h>\n"+changed), 0o600))
			command := func(args ...string) ([]byte, error) {
				cmd := exec.Command("make", args...)
				cmd.Dir = dir
				return cmd.CombinedOutput()
			}
			out, err := command(flags + "=-O0 -Wl,-z,defs")
			require.NoError(t, err, "%s", out)
			out, err = command("-q")
			require.NoError(t, err, "%s", out)
			later := time.Now().Add(time.Hour)
			require.NoError(t, os.Chtimes(filepath.Join(dir, "Makefile"), later, later))
			_, err = command("-q")
			require.Error(t, err, "the Makefile is newer than the library")
		})
	}
}

// The guide for authors goes on from here: it tests the module and builds a program with it.
func TestPluginsNewModule(t *testing.T) {
	t.Chdir(t.TempDir())
	got := commandtest.Run(t, "plugins", "new", "--lang", "go", "acme", "--module", "example.com/team/acme", "--primus", "v1.2.3=/src/primus")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "primus plugins build --with example.com/team/acme=. --output ./primus-acme")
	for _, name := range []string{"source.go", "source_test.go"} {
		text, err := os.ReadFile(filepath.Join("acme", name))
		require.NoError(t, err)
		formatted, err := format.Source(text)
		require.NoError(t, err)
		assert.Equal(t, string(formatted), string(text))
	}
	text, err := os.ReadFile(filepath.Join("acme", "go.mod"))
	require.NoError(t, err)
	assert.Equal(t, `module example.com/team/acme

go 1.26.0

require github.com/primus-fl/primus v1.2.3

replace github.com/primus-fl/primus => "/src/primus"
`, string(text))
}

// A module that is built against a checkout begins with its checksums, so that the go command need
// not ask for them.
func TestPluginsNewTakesChecksums(t *testing.T) {
	t.Chdir(t.TempDir())
	root, sums := t.TempDir(), "example.com/x v1.0.0 h1:x=\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.sum"), []byte(sums), 0o600))
	got := commandtest.Run(t, "plugins", "new", "--lang", "go", "acme", "--primus", root)
	require.Zero(t, got.Code, got.Stderr)
	text, err := os.ReadFile(filepath.Join("acme", "go.sum"))
	require.NoError(t, err)
	assert.Equal(t, sums, string(text))
	text, err = os.ReadFile(filepath.Join("acme", "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "replace github.com/primus-fl/primus => \""+root+"\"")
}

func TestPluginsNewBadArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("taken", nil, 0o600))
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"acme"}, 2, "no language given, want --lang with one of c, cpp, go, opencl, rust"},
		{[]string{"acme", "--lang", "fortran"}, 2, `given "fortran"`},
		{[]string{"--lang", "c"}, 2, "want the name of one vendor"},
		{[]string{"a", "b", "--lang", "c"}, 2, "want the name of one vendor"},
		{[]string{"Acme", "--lang", "c"}, 2, `given the name "Acme"`},
		{[]string{"../acme", "--lang", "c"}, 2, `given the name "../acme"`},
		{[]string{"func", "--lang", "go"}, 2, "no keyword"},
		{[]string{"main", "--lang", "go"}, 2, "no keyword"},
		{[]string{"acme", "--lang", "c", "--module", "example.com/a"}, 2, "only one in go"},
		{[]string{"acme", "--lang", "go", "--module", "a b"}, 2, `given "a b"`},
		{[]string{"taken", "--lang", "c"}, 1, "taken exists already"},
		{[]string{"acme", "--lang", "c", "--dir", "nothing/here"}, 1, "no such file"},
		{[]string{"acme", "--lang", "go"}, 2, "does not know which version"},
	}
	for _, tt := range tests {
		got := commandtest.Run(t, append([]string{"plugins", "new"}, tt.args...)...)
		assert.Equal(t, tt.code, got.Code, tt.args)
		assert.Contains(t, commandtest.OnlyError(t, got), tt.want)
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}
