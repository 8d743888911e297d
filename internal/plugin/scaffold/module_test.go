package scaffold

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A built program requires the highest version that any of its parts asks for, so that the go
// command finds every module in its cache.
func TestRequirements(t *testing.T) {
	t.Parallel()
	read := func(path, version, text string, replaced bool) part {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600))
		mod, err := readModule(dir)
		require.NoError(t, err)
		if version == "" {
			version = noVersion(path)
		}
		return part{Module: Module{path, version, "/src/" + path}, replaced: replaced, mod: mod}
	}
	text, err := requirements([]part{
		read("example.com/primus", "", "module example.com/primus\n\ngo 1.26.0\n\nrequire (\n\texample.com/x v1.9.0\n\texample.com/y v0.1.0 // indirect\n)\n", true),
		read("example.com/acme/v2", "", "module example.com/acme/v2\nrequire (\n\texample.com/primus v0.4.0\n\texample.com/x v1.10.0\n)\n", true),
		read("example.com/other", "v1.2.3", "module example.com/other\nrequire example.com/y v0.0.9\n", false),
	})
	require.NoError(t, err)
	assert.Equal(t, `module primus_with_plugins

go 1.26.0

require (
	example.com/primus v0.4.0
	example.com/acme/v2 v2.0.0-00010101000000-000000000000
	example.com/other v1.2.3
	example.com/x v1.10.0 // indirect
	example.com/y v0.1.0 // indirect
)

replace example.com/primus => /src/example.com/primus

replace example.com/acme/v2 => /src/example.com/acme/v2
`, string(text))
}

func TestReadModule(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{
		"":                    "names no module",
		"go 1.26.0\n":         "names no module",
		"module \"a\nb":       "go.mod:1",
		"module a\nmodule b":  "repeated module",
		"require x v1\n":      "names no module",
		"// module commented": "names no module",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(give), 0o600))
		_, err := readModule(dir)
		require.ErrorContains(t, err, want, give)
	}
	_, err := readModule(t.TempDir())
	require.ErrorContains(t, err, "want the root of a Go module")
}
