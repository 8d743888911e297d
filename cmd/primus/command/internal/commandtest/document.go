package commandtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Block is a fenced block of a document.
type Block struct {
	Language string
	Lines    []string
}

// Blocks returns the code blocks of a Markdown text.
func Blocks(text string) []Block {
	var found []Block
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !inside:
			inside = true
			found = append(found, Block{Language: language})
		case fence:
			inside = false
		case inside:
			last := &found[len(found)-1]
			last.Lines = append(last.Lines, line)
		}
	}
	return found
}

// Words returns the words of a command line, of which single or double quotes hold some together. A
// line that a shell would read in another way fails the test.
func Words(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	quote, begun := rune(0), false
	for _, c := range line {
		switch {
		case quote == 0 && c == ' ':
			begun = false
			continue
		case c == quote:
			quote = 0
			continue
		}
		if !begun {
			words, begun = append(words, ""), true
		}
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
			continue
		case quote == 0:
			require.NotContains(t, "<>|&;()$`\\", string(c), "quote it: %s", line)
		case quote == '"':
			require.NotContains(t, "$`\\", string(c), "quote it: %s", line)
		}
		words[len(words)-1] += string(c)
	}
	require.Zero(t, quote, "a quote is not closed: %s", line)
	return words
}
