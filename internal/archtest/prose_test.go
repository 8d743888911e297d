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

// maxSentence is the largest number of words of a sentence of the documentation.
const maxSentence = 35

var (
	fencedBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
	listItem    = regexp.MustCompile(`^ *([-*]|\d+\.) `)
	word        = regexp.MustCompile(`[\p{L}\d]\S*`)
	sentenceEnd = regexp.MustCompile(`[.?!:;]["')*]*\s+`)
)

// longSentences returns the sentences of a page that have more words than a limit. A colon and a
// semicolon end one, too; code in backticks, tables, headings and listings have no words.
func longSentences(page string, limit int) (long []string) {
	page = fencedBlock.ReplaceAllString(page, "\n")
	var paragraphs []string
	begin := true
	for line := range strings.Lines(page) {
		trimmed := strings.TrimSpace(line)
		item := listItem.MatchString(line)
		switch {
		case trimmed == "", strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "#"), strings.HasPrefix(line, "    "):
			begin = true
			continue
		case begin, item:
			paragraphs = append(paragraphs, "")
		}
		begin = false
		paragraphs[len(paragraphs)-1] += listItem.ReplaceAllString(trimmed, "") + " "
	}
	for _, text := range paragraphs {
		text = codeSpan.ReplaceAllString(linkTarget.ReplaceAllString(text, "]"), "")
		for _, sentence := range sentenceEnd.Split(text, -1) {
			if n := len(word.FindAllString(sentence, -1)); n > limit {
				long = append(long, fmt.Sprintf("a sentence of %d words, want at most %d: %s", n, limit, sentence))
			}
		}
	}
	return long
}

// inversion matches the beginning of a sentence whose verb comes before its subject.
var inversion = regexp.MustCompile(`(^|[.?!:;|] )(So|Nor|Neither|Thus|Only then|Among them|With it|With them) (is|are|was|were|do|does|did|has|have|can|may|must|it (is|does|has))\b[^.]*`)

// inversions returns the sentences of a page that begin with a verb before the subject.
func inversions(page string) (found []string) {
	page = strings.Join(strings.Fields(codeSpan.ReplaceAllString(fencedBlock.ReplaceAllString(page, ""), "code")), " ")
	for _, parts := range inversion.FindAllString(page, -1) {
		found = append(found, fmt.Sprintf("the verb comes before the subject: %s", strings.TrimLeft(parts, ".?!:;| ")))
	}
	return found
}

func TestSentences(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"a sentence of 4 words, want at most 3: A  is very long"},
		longSentences("# A heading of many words\n\nA `thing of\nmany` is\nvery long. One: two.\n\n| a | table | of | words |\n\n```sh\na b c d e\n```\n", 3))
	assert.Equal(t, []string{"the verb comes before the subject: So is the other one"}, inversions("One is refused.\nSo is the other one. So far, so good: and so are all.\n"))
	require.NoError(t, filepath.WalkDir("../../docs", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		page, err := os.ReadFile(path)
		for _, fault := range append(longSentences(string(page), maxSentence), inversions(string(page))...) {
			t.Errorf("%s: %s", path, fault)
		}
		return err
	}))
}
