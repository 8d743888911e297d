package tokenizer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/hftokenizers"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// mixedText returns documents of text in many scripts, code, emoji, numbers, odd white space, added
// tokens and broken UTF-8, of so many bytes together.
func mixedText(seed uint64, size int) [][]byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	parts := []func() string{
		func() string { return pick(rng, englishWords) },
		func() string { return " " + pick(rng, englishWords) },
		func() string { return " " + pick(rng, englishWords) + pick(rng, endings) },
		func() string { return " " + strings.ToUpper(pick(rng, englishWords)) },
		func() string { return pick(rng, codeLines) },
		func() string { return pick(rng, otherScripts) },
		func() string { return pick(rng, emoji) },
		func() string { return fmt.Sprint(rng.IntN(1 << rng.IntN(40))) },
		func() string { return strings.Repeat(pick(rng, spaces), 1+rng.IntN(5)) },
		func() string { return pick(rng, specials) },
		func() string { return string(rune(0x20 + rng.IntN(0x250))) },
		func() string { return randomRune(rng) },
		func() string { // bytes that are no UTF-8
			b := make([]byte, 1+rng.IntN(4))
			for i := range b {
				b[i] = byte(0x80 + rng.IntN(0x80))
			}
			return string(b)
		},
	}
	weights := []int{30, 200, 30, 10, 12, 30, 8, 15, 12, 3, 5, 5, 1}
	total := 0
	for _, w := range weights {
		total += w
	}
	var docs [][]byte
	for size > 0 {
		var b strings.Builder
		for want := min(size, 1+rng.IntN(4000)); b.Len() < want; {
			at := rng.IntN(total)
			for i, w := range weights {
				if at -= w; at < 0 {
					b.WriteString(parts[i]())
					break
				}
			}
		}
		docs = append(docs, []byte(b.String()))
		size -= b.Len()
	}
	return docs
}

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }

// randomRune returns a character that was assigned long ago, so that every table of Unicode in use
// agrees about it.
func randomRune(rng *rand.Rand) string {
	ranges := [][2]rune{{0xa1, 0x377}, {0x391, 0x3ff}, {0x400, 0x52f}, {0x5d0, 0x5ea}, {0x621, 0x64a}, {0x905, 0x939}, {0xe01, 0xe30}, {0x1100, 0x1159}, {0x1e00, 0x1eff}, {0x2000, 0x200a}, {0x2010, 0x2027}, {0x2030, 0x205e}, {0x2150, 0x218b}, {0x2190, 0x23ff}, {0x3041, 0x3096}, {0x4e00, 0x9fa5}, {0xac00, 0xd7a3}, {0x1d400, 0x1d454}, {0x1f300, 0x1f5ff}}
	r := ranges[rng.IntN(len(ranges))]
	return string(r[0] + rng.Int32N(r[1]-r[0]+1))
}

var (
	englishWords = strings.Fields(`the of and a in to is it that for on was with as be by at from this have or not are but had his they she which you we an would there their been has when who will more no if out so said what up its about into than them can only other new some could time these two may then do first any my now such like our over man me even most made after also did many before must through back years where much your way well down should because each just those people how too little state good very make world still own see men work long get here between both life being under never day same another know while last might us great old year off come since against go came right used take three`)
	endings      = []string{".", ",", "!", "?", ";", ":", "'s", "'t", "'LL", "'re", "'VE", "'d", "\"", ")", "...", "--", "’s", ".\n", ",\r\n", "!\n\n", "'", "''s"}
	codeLines    = []string{
		"func main() {\n\tfmt.Println(\"hello, 世界\")\n}\n", "if (a[i] != 0x1F && b <= 3.14e-10) return;\n", "    def f(self, x=None):\n        return x ** 2  # square\n",
		"<div class=\"a b\">&nbsp;</div>\n", "SELECT * FROM t WHERE id=42;\r\n", "\t\t} else {\n\n\n", "https://example.org/path/to?x=1&y=2/", "x_1 = camelCase + snake_case - kebab-case;", "//// ==== ////\n", "#include <stdio.h>\n",
	}
	otherScripts = []string{
		"Привет, мир! ", "Ελληνικά κείμενα ", "你好，世界。", "こんにちは世界", "안녕하세요 세계", "مرحبا بالعالم ", "שלום עולם ", "नमस्ते दुनिया", "สวัสดีชาวโลก", "Xin chào thế giới ", "Größe, café, naïve, Straße ",
		"e\u0301a\u0308o\u0302", "\u1112\u1161\u11ab", "Ⅷ½²³①", "٣٤٥ ", "ǅ ǈ", "ﬁ ﬂ", "İstanbul ", "Åſ", "ª º",
	}
	emoji    = []string{"😀", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "🤷‍♀️", "🏳️‍🌈", "☃", "✈️ "}
	spaces   = []string{" ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2003", "\v", "\u2028", "  \n"}
	specials = []string{"<|endoftext|>", "<s>", "</s>", "<|im_start|>", " <|eot|> ", "<pad>", "<|", "<s", "▁", "▁▁", "Ġ", "<0x0A>", "<unk>"}
)

// sameText compares a tokenizer with @huggingface/tokenizers on texts.
func sameText(t *testing.T, path string, texts [][]byte) {
	t.Helper()
	peer, err := hftokenizers.Encode(t.Context(), path, texts)
	if errors.Is(err, hftokenizers.ErrAbsent) {
		t.Skip(err)
	}
	require.NoError(t, err)
	want := peer.IDs
	tok, err := tokenizer.Load(path)
	require.NoError(t, err)
	require.Len(t, want, len(texts))
	decoded := sha256.New()
	for i, text := range texts {
		got := tok.Encode(nil, text)
		if !assert.Equal(t, want[i], append([]int32{}, got...)) {
			at := 0
			for at < min(len(got), len(want[i])) && got[at] == want[i][at] {
				at++
			}
			require.FailNow(t, "the ids differ", "document %d, after %q: %q against %q", i, tok.Decode(nil, got[max(0, at-5):at]),
				tok.Decode(nil, got[at:min(len(got), at+5)]), tok.Decode(nil, want[i][at:min(len(want[i]), at+5)]))
		}
		text := tokenizer.Valid(tok.Decode(nil, got))
		require.True(t, utf8.Valid(text))
		decoded.Write(text)
		decoded.Write([]byte("\n"))
	}
	assert.Equal(t, peer.Decoded, hex.EncodeToString(decoded.Sum(nil)), "decoded texts")
}

// peerBytes is the size of the texts that families are compared on.
var peerBytes = flag.Int("peer-bytes", 60_000, "compare so many bytes of text with @huggingface/tokenizers for each family")

// TestFamilies compares tokenizers in the shape of known ones with @huggingface/tokenizers.
func TestFamilies(t *testing.T) {
	t.Parallel()
	for name := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameText(t, familyFile(t, name), mixedText(3, *peerBytes))
		})
	}
}
