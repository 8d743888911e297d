package inference_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/stretchr/testify/assert"
)

func TestFirstWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, give, want string }{
		{"a whole line", "end of a line\nand therefore go\nnext", "and therefore go"},
		{"a long line is cut between words", "x\nThe quick brown fox jumps over the lazy dog\n", "The quick brown fox"},
		{"a word that ends where the prompt must", "x\nThe quick brown foxes 012 jump\n", "The quick brown foxes"},
		{"short lines and blanks are passed over", "x\n\n}\n\t\treturn nil, err\n", "return nil, err"},
		{"a line of one word", "x\n" + strings.Repeat("a", 100), strings.Repeat("a", 24)},
		{"no line", "nce upon a time", "upon a time"},
		{"no second word", "onceuponatime", "onceuponatime"},
		{"only short lines", "a\nb\nc", "a\nb\nc"},
		{"no character is cut", "x\n" + strings.Repeat("日", 20), strings.Repeat("日", 8)},
		{"the first character is cut in two", "x\n" + strings.Repeat("a", 23) + "é", strings.Repeat("a", 23)},
		{"no text", " \n\n", "\n"},
		{"no UTF-8", "\xff\xff", "\n"},
	} {
		assert.Equal(t, tt.want, inference.FirstWords(tt.give), tt.name)
	}
}
