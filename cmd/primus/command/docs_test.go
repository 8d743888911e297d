package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// block is a fenced block of a document.
type block struct {
	language string
	lines    []string
}

func blocks(text string) []block {
	var found []block
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !inside:
			inside = true
			found = append(found, block{language: language})
		case fence:
			inside = false
		case inside:
			last := &found[len(found)-1]
			last.lines = append(last.lines, line)
		}
	}
	return found
}

// TestDocuments checks that listings which name a file are in that file, part by part, and that commands print what the
// document shows behind them, in that order.
func TestDocuments(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")))
	t.Chdir(dir)
	for _, name := range []string{"writing-a-backend.md", "writing-a-patch.md"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, "docs", name))
			require.NoError(t, err)
			listings, commands, output := 0, 0, ""
			for _, b := range blocks(string(text)) {
				switch b.language {
				case "go", "yaml":
					listings++
					checkListing(t, root, b)
				case "sh":
					for _, line := range b.lines {
						commands++
						words := strings.Fields(line)
						require.Equal(t, "primus", words[0])
						got := primus(t, words[1:]...)
						require.Zero(t, got.code, got.stderr)
						output = got.stderr + got.out
					}
				case "text":
					rest := oneBlank(output)
					for _, line := range b.lines {
						var found bool
						_, rest, found = strings.Cut(rest, oneBlank(line))
						require.True(t, found, "%q in this order in\n%s", line, output)
					}
				}
			}
			assert.GreaterOrEqual(t, listings, 2)
			assert.GreaterOrEqual(t, commands, 2)
		})
	}
}

// oneBlank makes one blank of several, because the widths of columns depend on what else is in a table.
func oneBlank(s string) string { return strings.Join(strings.Fields(s), " ") }

// checkListing checks a block that begins with the name of a file in a comment. A comment of three dots stands for what is
// left out.
func checkListing(t *testing.T, root string, b block) {
	t.Helper()
	comment := map[string]string{"go": "// ", "yaml": "# ", "c": "/* "}[b.language]
	file, ok := strings.CutPrefix(strings.TrimSuffix(b.lines[0], " */"), comment)
	require.True(t, ok, "a listing names its file: %s", b.lines[0])
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	require.NoError(t, err)
	rest := string(text)
	for part := range strings.SplitSeq(strings.Join(b.lines[1:], "\n"), fmt.Sprintf("\n%s…\n", comment)) {
		var found bool
		_, rest, found = strings.Cut(rest, part)
		require.True(t, found, "in %s:\n%s", file, part)
	}
}
