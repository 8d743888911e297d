package backend_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzExpand compares with a scanner that knows no regular expressions.
//
// Oracle: second decoder.
func FuzzExpand(f *testing.F) {
	for _, text := range []string{"$A", "${A}", "$A$A/${A", "$AB${}", "a$", "$$A", "${${A}}", "é$Aé", "$1${1}"} {
		f.Add(text, "1")
	}
	f.Add("${A}", "$A")
	f.Fuzz(func(t *testing.T, text, value string) {
		defer primustest.Measured(t, len(text)+len(value))()
		e := backend.MapEnviron(map[string]string{"A": value, "B_2": "two"})
		assert.Equal(t, scan(text, e.Lookup), e.Expand(text))
	})
}

// scan replaces references from left to right. One that names nothing is left as a whole.
func scan(text string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for text != "" {
		name, whole := referenceAt(text)
		if value, ok := lookup(name); ok && name != "" {
			b.WriteString(value)
		} else {
			b.WriteString(text[:whole])
		}
		text = text[whole:]
	}
	return b.String()
}

// referenceAt returns the name that a reference at the start of text has, and the length of it; of
// other text the first byte.
func referenceAt(text string) (name string, length int) {
	if text[0] != '$' || len(text) == 1 {
		return "", 1
	}
	if text[1] == '{' {
		if end := strings.IndexByte(text, '}'); end >= 0 {
			return text[2:end], end + 1
		}
		return "", 1
	}
	end := 1
	for end < len(text) && (text[end] == '_' || text[end] < unicode.MaxASCII && (unicode.IsLetter(rune(text[end])) || unicode.IsDigit(rune(text[end])))) {
		end++
	}
	return text[1:end], max(end, 1)
}
