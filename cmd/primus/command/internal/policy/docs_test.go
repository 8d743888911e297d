package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readDocument returns a page by its path in docs.
func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "docs", name))
	require.NoError(t, err)
	return string(text)
}

// section returns the part of a document below a heading.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, part, ok := strings.Cut(text, "\n## "+heading+"\n")
	require.True(t, ok, heading)
	part, _, _ = strings.Cut(part, "\n## ")
	return part
}

// firstCells returns the names and texts between backquotes in the first cells of the tables of a
// document.
func firstCells(text string) []string {
	var cells []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			cells = append(cells, name[1])
		}
	}
	return cells
}

// The tables of variables have the variables that the program knows, no more and no less.
func TestDocumentedVariables(t *testing.T) {
	want := slices.Sorted(slices.Values(dispatch.Variables()))
	for _, name := range []string{"howto/from-transformerengine-fl.md", "explanation/dispatch.md"} {
		have := slices.Sorted(slices.Values(firstCells(section(t, readDocument(t, name), "Variables"))))
		assert.Equal(t, want, have, name)
	}
}

// The log lines for users of TransformerEngine-FL are those that a run writes and that the op
// manager has texts for.
func TestDocumentedLogLines(t *testing.T) {
	lines := section(t, readDocument(t, "howto/from-transformerengine-fl.md"), "Log lines")
	pattern := func(text, wild string) string { return strings.ReplaceAll(regexp.QuoteMeta(text), "…", wild) }

	t.Setenv("TEFL_LOG_FORMAT", "upstream")
	t.Setenv("TEFL_LOG_LEVEL", "INFO")
	got := commandtest.NewLab(t).Train("train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	checked := 0
	for _, b := range commandtest.Blocks(lines) {
		for _, line := range b.Lines {
			any := regexp.MustCompile(`\d+`).ReplaceAllLiteralString(pattern(line, ".*"), `\d+`)
			assert.Regexp(t, "(?m)^"+any+"$", got.Stderr)
			checked++
		}
	}
	assert.Equal(t, 3, checked)

	source, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "opmanager", "log.go"))
	require.NoError(t, err)
	texts := firstCells(lines)
	assert.Len(t, texts, 9)
	for _, text := range texts {
		assert.Regexp(t, `"`+strings.ReplaceAll(pattern(text, "%[sdv]"), " %[sdv]", " (%[sdv])+"), string(source))
	}
}

// The faults that policy-file.md shows are those that policy check prints.
func TestDocumentedPolicyFaults(t *testing.T) {
	file := commandtest.PolicyIn(t, t.TempDir(), "faulty.yaml", "# faulty.yaml\nprefr: vendor\nstrict: 7\n")
	got := commandtest.Run(t, "policy", "check", file)
	assert.Equal(t, 1, got.Code)
	printed := strings.ReplaceAll(strings.TrimSpace(got.Stderr), file, "faulty.yaml")
	assert.Contains(t, section(t, readDocument(t, "reference/policy-file.md"), "Checking"), printed)
}
