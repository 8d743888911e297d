// Package goldentest compares what a test got with golden files and with parts of pages.
package goldentest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Update says whether golden files are rewritten.
var Update = flag.Bool("update", false, "rewrite the golden files")

// Check compares got with the file of this name in testdata.
func Check(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *Update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test -update accepts a change")
}

// Section compares got with what a page has between the comments "generated: " followed by by, and
// "end".
func Section(t *testing.T, page, by, got string) {
	t.Helper()
	begin, end := "<!-- generated: "+by+" -->\n\n", "\n<!-- end -->\n"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has the line %q", page, begin)
	want, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s has the line %q after %q", page, end, begin)
	if *Update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+got+end+after), 0o644))
		return
	}
	assert.Equal(t, want, got, "%s: go test -update accepts a change", page)
}
