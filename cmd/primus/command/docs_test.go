package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocuments checks that listings which name a file are in that file, part by part, and that
// commands print what the document shows after them, in that order.
func TestDocuments(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")))
	t.Chdir(dir)
	for _, name := range []string{"writing-a-backend.md", "writing-a-patch.md", "writing-a-device.md"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, "docs", "tutorials", name))
			require.NoError(t, err)
			listings, commands, output := 0, 0, ""
			for _, b := range commandtest.Blocks(string(text)) {
				switch b.Language {
				case "go", "yaml", "c":
					listings++
					checkListing(t, root, b)
				case "sh":
					commands += len(b.Lines)
					output = runBlock(t, b, 0)
				case "text":
					checkOutput(t, b, output)
				}
			}
			assert.GreaterOrEqual(t, listings, 2)
			assert.GreaterOrEqual(t, commands, 2)
		})
	}
}

// TestCompatibilityCommands runs what docs/reference/compatibility.md shows beside the files of
// Primus.
func TestCompatibilityCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "compatibility.md"))
	require.NoError(t, err)
	dir := commandtest.RecordedInputs(t)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Symlink(dir, "Primus"))
	codes, output := map[int]int{}, ""
	for _, b := range commandtest.Blocks(string(text)) {
		language, exit, _ := strings.Cut(b.Language, " exit=")
		switch language {
		case "sh":
			code := 0
			if exit != "" {
				code, err = strconv.Atoi(exit)
				require.NoError(t, err)
			}
			codes[code]++
			output = runBlock(t, b, code)
		case "text":
			checkOutput(t, b, output)
		default:
			t.Errorf("a block of language %q, want sh or text, so that it is run", b.Language)
		}
	}
	assert.Equal(t, map[int]int{0: 3, 1: 1}, codes)
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing is written")
}

// TestPatchesCommands runs what docs/howto/patches.md shows, on the checkouts that it is about.
func TestPatchesCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "howto", "patches.md"))
	require.NoError(t, err)
	checkouts := map[string]string{"Primus": os.Getenv("PRIMUS_CHECKOUT"), "Megatron-LM": os.Getenv("MEGATRON_CHECKOUT")}
	t.Chdir(t.TempDir())
	for name, dir := range checkouts {
		if dir == "" {
			t.Skip("PRIMUS_CHECKOUT and MEGATRON_CHECKOUT do not name checkouts of Primus and Megatron-LM")
		}
		require.NoError(t, os.Symlink(dir, name))
	}
	output := ""
	for _, b := range commandtest.Blocks(string(text)) {
		language, exit, _ := strings.Cut(b.Language, " exit=")
		switch language {
		case "sh":
			code := 0
			if exit != "" {
				code, err = strconv.Atoi(exit)
				require.NoError(t, err)
			}
			output = runBlock(t, b, code)
		case "text":
			checkOutput(t, b, output)
		default:
			t.Errorf("a block of language %q, want sh or text, so that it is run", b.Language)
		}
	}
}

// TestTrackingGuide runs what docs/howto/tracking.md shows.
func TestTrackingGuide(t *testing.T) {
	primustest.Long(t, "it types the commands of a page")
	runGuide(t, "howto/tracking.md", "examples")
	assert.FileExists(t, "lr.png")
}

// TestTokenizersGuide runs what docs/howto/tokenizers.md shows.
func TestTokenizersGuide(t *testing.T) {
	runGuide(t, "howto/tokenizers.md", "README.md", "CONTRIBUTING.md")
}

// TestDataGuide runs what docs/howto/data.md shows.
func TestDataGuide(t *testing.T) { runGuide(t, "howto/data.md", "README.md", "docs", "examples") }

// TestDebuggingGuide runs what docs/howto/debugging-numerics.md shows.
func TestDebuggingGuide(t *testing.T) { runGuide(t, "howto/debugging-numerics.md", "examples") }

// TestTuningGuide runs what docs/howto/tuning.md shows.
func TestTuningGuide(t *testing.T) {
	primustest.Long(t, "it types the commands of a page")
	runGuide(t, "howto/tuning.md", "examples")
	assert.FileExists(t, "tune.json")
	assert.FileExists(t, "trace.json")
}

// runGuide runs what a page shows, in an empty folder with links to some files of the tree.
func runGuide(t *testing.T, page string, links ...string) {
	t.Helper()
	primustest.Sequential(t, "it types the commands of a page")
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	for _, link := range links {
		require.NoError(t, os.Symlink(filepath.Join(root, link), link))
	}
	output := ""
	for _, b := range commandtest.Blocks(string(text)) {
		switch b.Language {
		case "sh":
			output = runBlock(t, b, 0)
		case "text":
			checkOutput(t, b, output)
		}
	}
}

// runBlock runs the commands of a block and returns what the last one prints.
func runBlock(t *testing.T, b commandtest.Block, code int) string {
	t.Helper()
	var got commandtest.Outcome
	for _, line := range b.Lines {
		words := commandtest.Words(t, line)
		require.Equal(t, "primus", words[0])
		got = commandtest.Run(t, words[1:]...)
		require.Equal(t, code, got.Code, "%s: %s", line, got.Stderr)
	}
	return got.Stderr + got.Out
}

// checkOutput checks that lines of a block were printed, in their order.
func checkOutput(t *testing.T, b commandtest.Block, output string) {
	t.Helper()
	rest := commandtest.OneSpace(output)
	for _, line := range b.Lines {
		var found bool
		_, rest, found = strings.Cut(rest, commandtest.OneSpace(line))
		require.True(t, found, "%q in this order in\n%s", line, output)
	}
}

// checkListing checks a block that begins with the name of a file in a comment. A comment of three
// dots stands for what is left out.
func checkListing(t *testing.T, root string, b commandtest.Block) {
	t.Helper()
	comment := map[string]string{"go": "// ", "yaml": "# ", "python": "# ", "c": "/* "}[b.Language]
	file, ok := strings.CutPrefix(strings.TrimSuffix(b.Lines[0], " */"), comment)
	require.True(t, ok, "a listing names its file: %s", b.Lines[0])
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	require.NoError(t, err)
	rest := string(text)
	for part := range strings.SplitSeq(strings.Join(b.Lines[1:], "\n"), fmt.Sprintf("\n%s…\n", comment)) {
		var found bool
		_, rest, found = strings.Cut(rest, part)
		require.True(t, found, "in %s:\n%s", file, part)
	}
}
