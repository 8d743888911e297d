package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree writes a module into a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/tree\n\ngo 1.26\n"
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestEachSystemHasItsErrors(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"size/size.go":         "package size\n\nfunc Of(text string) int { return len(text) }\n",
		"size/size_windows.go": "package size\n\nfunc room() string { return Of(``) }\n",
		"size/size_arm64.go":   "package size\n\nimport \"unsafe\"\n\nvar wide int8 = 128\n",
		"size/in_test.go":      "package size\n\nimport \"testing\"\n\nfunc Shared(t *testing.T) int { return Of(t.Name()) }\n",
		"size/size_darwin_test.go": "package size_test\n\nimport (\n\t\"testing\"\n\n\t\"example.org/tree/size\"\n\t\"example.org/tree/twice\"\n)\n\n" +
			"func TestOf(t *testing.T) { twice.Of(size.Of, size.Shared(t), t) }\n",
		"twice/twice.go":     "package twice\n\nimport \"example.org/tree/size\"\n\nfunc Of(_ func(string) int, n int) int { return n * size.Of(`a`) }\n",
		"twice/bad_linux.go": "package twice\n\nfunc bad( {\n",
	})
	const (
		pointer = "size/size_arm64.go:3:8: \"unsafe\" imported and not used"
		narrow  = "size/size_arm64.go:5:17: cannot use 128 (untyped int constant) as int8 value in variable declaration (overflows)"
		result  = "size/size_windows.go:3:29: cannot use Of(``) (value of type int) as string value in return statement"
		many    = "size/size_darwin_test.go:10:63: too many arguments in call to twice.Of\n\thave (func(text string) int, int, *testing.T)\n\twant (func(string) int, int)"
	)
	var out strings.Builder
	require.EqualError(t, run(dir, []string{"darwin/arm64", "windows/arm64", "darwin/amd64"}, &out), "given 4 errors, want none")
	assert.Equal(t, strings.Join([]string{
		pointer + " [darwin/arm64 windows/arm64]",
		narrow + " [darwin/arm64 windows/arm64]",
		many + " [darwin/arm64 darwin/amd64]",
		result + " [windows/arm64]",
	}, "\n")+"\n", out.String())

	out.Reset()
	require.EqualError(t, run(dir, []string{"linux/amd64"}, &out), "given 1 errors, want none")
	assert.Contains(t, out.String(), "twice/bad_linux.go:3:11: ")
}

func TestModuleWithoutErrors(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	dir := tree(t, map[string]string{"a.go": "package a\n\nimport \"strconv\"\n\nvar One = strconv.Itoa(1)\n"})
	require.NoError(t, run(dir, []string{"windows/amd64", "linux/arm64"}, &out))
	assert.Empty(t, out.String())
}

func TestWhatCannotBeChecked(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.go": "package a\n\nimport \"example.org/none\"\n\nvar _ = none.X\n"})
	for _, c := range []struct {
		systems []string
		want    string
	}{
		{nil, "given no systems, want some of GOOS/GOARCH"},
		{[]string{"windows"}, `given the system "windows", want GOOS/GOARCH`},
		{[]string{"linux/z80"}, `given the system "linux/z80", want GOOS/GOARCH`},
		{[]string{"plan10/amd64"}, "plan10/amd64"},
		{[]string{"linux/amd64"}, "a.go:3:8: "},
	} {
		require.ErrorContains(t, run(dir, c.systems, &strings.Builder{}), c.want, "%v", c.systems)
	}
}
