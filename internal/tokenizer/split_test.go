package tokenizer_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer"

	"github.com/primus-fl/primus/internal/primustest"
)

// whiteSpace is \s as package regexp has it within a class.
const whiteSpace = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`

// oracle returns the length of the first match of an expression, with package regexp: without the
// look-ahead, which it lacks and which stands at the end, and with \s as Unicode has it.
func oracle(t testing.TB, expr string) func(text string) int {
	t.Helper()
	before, ok := strings.CutSuffix(expr, `|\s+(?!\S)|\s+`)
	require.True(t, ok)
	before = strings.ReplaceAll(before, `(?i:'s|'t|'re|'ve|'m|'ll|'d)`, `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`)
	before = strings.ReplaceAll(before, `[^\s`, `[^`+whiteSpace)
	before = strings.ReplaceAll(before, `\s*`, `[`+whiteSpace+`]*`)
	require.NotContains(t, before, `\s`)
	first, spaces := regexp.MustCompile(`^(?:`+before+`)`), regexp.MustCompile(`^[`+whiteSpace+`]+`)
	return func(text string) int {
		if m := first.FindString(text); m != "" {
			return len(m)
		}
		run := spaces.FindString(text)
		if run == text {
			return len(run)
		}
		_, last := utf8.DecodeLastRuneInString(run)
		if last == len(run) {
			return last
		}
		return len(run) - last
	}
}

// comparison returns a function that compares a scanner with its expression on all words of a text.
func comparison(t testing.TB, name string) func(t testing.TB, text string) {
	t.Helper()
	expr, ok := tokenizer.Expr(name)
	require.True(t, ok)
	scan, ok := tokenizer.Find(expr)
	require.True(t, ok)
	want := oracle(t, expr)
	return func(t testing.TB, text string) {
		for len(text) > 0 {
			n := scan([]byte(text))
			if n != want(text) {
				require.Equal(t, want(text), n, "%s: the first word of %q", name, text)
			}
			text = text[n:]
		}
	}
}

// parts are what patterns tell apart.
var parts = []string{
	"a", "é", "Z", "word", "WORD", "Word", "ß", "ǅ", "ʰ", "ª", "中", "文字", "ا", "नि", "e\u0301", "\u0301", "ſ",
	"1", "23", "4567", "½", "Ⅷ", "٣", " ", "  ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u0085", "\ufeff",
	"'", "'s", "'S", "'ll", "'Ll", "'re", "'ve", "'d", "'m", "'t", "'x", "'ſ", ".", "!?", "/", "//", "-", "_", "😀", "👨‍👩‍👧", "\u200d", "<", "|>", "$", "€", "\x00",
}

func TestScanners(t *testing.T) {
	t.Parallel()
	for _, name := range tokenizer.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, 1))
			same := comparison(t, name)
			for range 4000 {
				var b strings.Builder
				for range 1 + rng.IntN(8) {
					b.WriteString(parts[rng.IntN(len(parts))])
				}
				same(t, b.String())
			}
		})
	}
}

// Oracle: second decoder.
func FuzzScanners(f *testing.F) {
	for _, part := range parts {
		f.Add(part + " " + part)
	}
	var all []func(testing.TB, string)
	for _, name := range tokenizer.Names() {
		all = append(all, comparison(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		text = strings.ToValidUTF8(text, "\uFFFD")
		for _, same := range all {
			same(t, text)
		}
	})
}

// TestCut checks that a text may be cut where Cut says: its parts have the words of the whole.
func TestCut(t *testing.T) {
	t.Parallel()
	words := func(scan tokenizer.Scanner, text string) (all []string) {
		for len(text) > 0 {
			n := scan([]byte(text))
			all, text = append(all, text[:n]), text[n:]
		}
		return all
	}
	rng := rand.New(rand.NewPCG(1, 1))
	safe := regexp.MustCompile(`^([!-~] |[A-Za-z]\n)$`)
	cuts := 0
	for range 3000 {
		var b strings.Builder
		for range 2 + rng.IntN(8) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		text := b.String()
		at := tokenizer.Cut([]byte(text))
		require.Positive(t, at)
		if !safe.MatchString(text[at-1 : min(len(text), at+1)]) {
			continue // there is no such place
		}
		cuts++
		for _, name := range tokenizer.Names() {
			expr, _ := tokenizer.Expr(name)
			scan, _ := tokenizer.Find(expr)
			require.Equal(t, words(scan, text), append(words(scan, text[:at]), words(scan, text[at:])...), "%s: %q cut at %d", name, text, at)
		}
	}
	assert.Greater(t, cuts, 200)
	assert.Equal(t, 1, tokenizer.Cut([]byte("a中")[:3]), "a character that is not whole yet goes to the next part")
	assert.Equal(t, 1, tokenizer.Cut([]byte("a")))
}

func TestDigitsAndPunctuation(t *testing.T) {
	t.Parallel()
	all := func(scan tokenizer.Scanner, text string) (words []string) {
		for len(text) > 0 {
			n := scan([]byte(text))
			words, text = append(words, text[:n]), text[n:]
		}
		return words
	}
	assert.Equal(t, []string{"ab ", "12", "c", "٣"}, all(tokenizer.Digits(false), "ab 12c٣"))
	assert.Equal(t, []string{"ab ", "1", "2", "c", "٣"}, all(tokenizer.Digits(true), "ab 12c٣"))
	assert.Equal(t, []string{"ab", ",", " c", "+", "-"}, all(tokenizer.Punctuation(), "ab, c+-"))
}
