package plaintext_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	for _, tt := range []struct{ name, give, want, lines string }{
		{"plain", `a b "é" \ →`, `a b "é" \ →`, `a b "é" \ →`},
		{"colour", "\x1b[31mred", `\x1b[31mred`, `\x1b[31mred`},
		{"one byte control of C1", "\u009b2J", `\u009b2J`, `\u009b2J`},
		{"another direction", "a\u202eb", `a\u202eb`, `a\u202eb`},
		{"not UTF-8", "a\xffb\xc3", `a\xffb\xc3`, `a\xffb\xc3`},
		{"a line of its own", "a\n12:00:00 INFO  b\tc\r", `a\n12:00:00 INFO  b\tc\r`, "a\n  12:00:00 INFO  b\tc\\r"},
		{"the replacement character itself", "\ufffd", "\ufffd", "\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, plaintext.Text(tt.give))
			assert.Equal(t, tt.lines, plaintext.Lines(tt.give, "  "))
			assert.Equal(t, tt.give == tt.want, plaintext.IsPrintable(tt.give))
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b\n\xff\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		defer primustest.Measured(t, len(s))()
		got := plaintext.Text(s)
		assert.True(t, utf8.ValidString(got))
		assert.Negative(t, strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", got)
		assert.True(t, plaintext.IsPrintable(got))
		if plaintext.IsPrintable(s) {
			assert.Equal(t, s, got)
		}
		for i, line := range strings.Split(plaintext.Lines(s, "  "), "\n") {
			assert.True(t, i == 0 || strings.HasPrefix(line, "  "))
		}
	})
}
