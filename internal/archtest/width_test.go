package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxColumns bounds the lines of comments. Comments after code, examples and what they print may be
// longer.
const maxColumns = 100

// checkWidths returns the lines of a file that are comments of more than maxColumns columns.
func checkWidths(s source, text string) []string {
	var found []string
	lines := strings.Split(text, "\n")
	for _, group := range s.file.Comments {
		if strings.HasPrefix(group.Text(), "Output:") {
			continue // what an example prints, line by line
		}
		for _, comment := range group.List {
			n := s.fset.Position(comment.Pos()).Line
			line := lines[n-1]
			if columns := utf8.RuneCountInString(line); columns > maxColumns && strings.HasPrefix(strings.TrimSpace(line), "// ") {
				found = append(found, fmt.Sprintf("%s:%d: a comment of %d columns: wrap it at %d", s.where(), n, columns, maxColumns))
			}
		}
	}
	return found
}

func TestCommentWidths(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(s.where())))
		require.NoError(t, err)
		for _, violation := range checkWidths(s, string(text)) {
			t.Error(violation)
		}
	}
}

func TestCommentWidthsFindsViolations(t *testing.T) {
	t.Parallel()
	long := "// " + strings.Repeat("word ", 20)
	for text, want := range map[string]int{
		"package a\n\n" + long + "\nvar x int\n":              1,
		"package a\n\nvar x int " + long + "\n":               0,
		"package a\n\nvar x = `\n" + long + "\n`\n":           0,
		"package a\n\n// Output:\n" + long + "\n":             0,
		"package a\n\n" + long[:90] + "\nvar x int\n":         0,
		"package a\n\n//" + "\t" + long[3:] + "\nvar x int\n": 0,
	} {
		assert.Len(t, checkWidths(parse(t, "a/a.go", text), text), want, text)
	}
}
