package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forbidden is a word that the glossary forbids, and the one to write.
type forbidden struct {
	word    *regexp.Regexp
	instead string
}

// readGlossary returns the words that a glossary forbids.
func readGlossary(t *testing.T, glossary string) (words []forbidden) {
	t.Helper()
	for line := range strings.Lines(glossary) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[1]) == "word" {
			continue
		}
		for word := range strings.SplitSeq(cells[3], ",") {
			if word = strings.TrimSpace(word); word != "" {
				words = append(words, forbidden{regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(word) + `s?\b`), strings.TrimSpace(cells[1])})
			}
		}
	}
	require.NotEmpty(t, words)
	return words
}

// checkWords returns what a text should say instead of forbidden words. Code in backticks has names
// of its own.
func checkWords(words []forbidden, text string) (found []string) {
	text = code.ReplaceAllString(text, "")
	for _, f := range words {
		if word := f.word.FindString(text); word != "" {
			found = append(found, fmt.Sprintf("write %q instead of %q", f.instead, word))
		}
	}
	return found
}

var code = regexp.MustCompile("(?s)```.*?```|`[^`]*`|https?://\\S+")

func TestGlossary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/glossary.md")
	require.NoError(t, err)
	words := readGlossary(t, string(text))
	assert.Equal(t, []string{`write "catalogue" instead of "Catalogs"`}, checkWords(words, "The Catalogs of a `data set`."))
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if path == filepath.Join("..", "..", "bin") {
			return fs.SkipDir // what make site-env installs
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") || entry.Name() == "glossary.md" {
			return err
		}
		page, err := os.ReadFile(path)
		for _, f := range checkWords(words, string(page)) {
			t.Errorf("%s: %s", path, f)
		}
		return err
	}))
	for _, s := range tree(t) {
		for _, group := range s.file.Comments {
			for _, f := range checkWords(words, group.Text()) {
				t.Errorf("%s:%d: %s", s.where(), s.fset.Position(group.Pos()).Line, f)
			}
		}
	}
}
