package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pages of docs stay short enough to be read: what a command can print has a mark that says so.
func TestPagesAreShort(t *testing.T) {
	const limit = 45_000
	pages, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	total := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		total += words(string(text))
	}
	assert.LessOrEqual(t, total, limit, "hand-written words of docs; go run ./internal/treestats -words has those of each page")
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		name, page string
		want       int
	}{
		{"nothing", "", 0},
		{"prose", "# A heading\n\n- one – `two three`, 4\n", 6},
		{"a link counts once", "[what it is](../a%20page.md#of many words)\n", 3},
		{"a table", "| a | b c |\n|---|---|\n| `d` | |\n", 4},
		{"listings", "one\n\n```sh\na b\n```\n\n1. two\n\n   ```go\n   c d\n   ```\n\nthree\n", 4},
		{"generated", "one\n<!-- generated: make a -->\n\n| a |\n<!-- end -->\ntwo\n<!-- generated: b -->\nc\n<!-- end -->\n", 2},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, words(tt.page)) })
	}
}
