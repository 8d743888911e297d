package tokenizer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// TestValid has the examples of the Unicode Standard, section 3.9, and others that TextDecoder of
// browsers was asked about.
func TestValid(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"aé😀":                                  "aé😀",
		"\xff":                                 "\uFFFD",
		"a\x80\x80b":                           "a\uFFFD\uFFFDb",
		"\xc0\xaf\xe0\x80":                     "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xe2\x82":                             "\uFFFD",
		"\xe2\x82a":                            "\uFFFDa",
		"\xf0\x9f\x98":                         "\uFFFD",
		"\xf0\x9f\x98\xf0":                     "\uFFFD\uFFFD",
		"\xed\xa0\x80":                         "\uFFFD\uFFFD\uFFFD", // a surrogate
		"\xf4\x90\x80\x80":                     "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41": "\uFFFD\uFFFD\uFFFD\uFFFDA",
		"\xc3":                                 "\uFFFD",
	}
	for give, want := range tests {
		assert.Equal(t, want, string(tokenizer.Valid([]byte(give))), "%q", give)
	}
}

func TestNormalizers(t *testing.T) {
	t.Parallel()
	form := func(name string) tokenizer.Normalizer {
		n, ok := tokenizer.Form(name)
		require.True(t, ok)
		return n
	}
	tests := []struct {
		name       string
		normalizer tokenizer.Normalizer
		give, want string
	}{
		{"NFC", form("NFC"), "e\u0301\u1112\u1161\u11ab", "é한"},
		{"NFD", form("NFD"), "é", "e\u0301"},
		{"NFKC", form("NFKC"), "ﬁ½", "fi1⁄2"},
		{"NFKD", form("NFKD"), "é²", "e\u03012"},
		{"Prepend", tokenizer.Prepend("▁"), "a b", "▁a b"},
		{"Prepend to nothing", tokenizer.Prepend("▁"), "", ""},
		{"Replace", tokenizer.Replace(" ", "▁"), "  a b", "▁▁a▁b"},
		{"Strip", tokenizer.Strip(true, true), " \u3000a b\n", "a b"},
		{"Strip left", tokenizer.Strip(true, false), " a ", "a "},
		{"Lower", tokenizer.Lower, "ÀBc İ Σ", "àbc i\u0307 σ"},
		{"StripMarks", tokenizer.StripMarks, "e\u0301नि", "eन"},
		{"Sequence", tokenizer.Sequence([]tokenizer.Normalizer{tokenizer.Prepend("▁"), tokenizer.Replace(" ", "▁")}), "a b", "▁a▁b"},
		{"empty Sequence", tokenizer.Sequence(nil), "a", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "before"+tt.want, string(tt.normalizer([]byte("before"), []byte(tt.give))))
		})
	}
	_, err := tokenizer.Precompiled([]byte{1, 2})
	require.ErrorContains(t, err, "header")
	_, err = tokenizer.Precompiled([]byte{8, 0, 0, 0, 1, 2, 3, 4})
	require.ErrorContains(t, err, "8 bytes")
}
