package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"
)

// try loads a file and, if that succeeds, encodes and decodes with it: ids must be below VocabSize.
func try(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	var tok *tokenizer.File
	var err error
	primustest.Cost(t, len(data), 20_000, func() { tok, err = tokenizer.Load(path) })
	if err != nil {
		return
	}
	ids := tok.EncodePrompt(nil, []byte("  A text, of\nabab <s>words</s>\xff▁▁ 123é"))
	for _, id := range ids {
		require.True(t, id >= 0 && int(id) < tok.VocabSize(), "id %d of %d", id, tok.VocabSize())
	}
	tok.Decode(nil, append(ids, -1, 1<<30))
}

func FuzzTokenizerJSON(f *testing.F) {
	for _, change := range []func(map[string]any){
		func(map[string]any) {},
		func(f map[string]any) {
			f["pre_tokenizer"] = map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}
		},
		func(f map[string]any) {
			f["normalizer"] = map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"}
		},
		func(f map[string]any) { f["post_processor"] = template("<s>", 0) },
		func(f map[string]any) {
			f["pre_tokenizer"] = nil
			f["model"] = map[string]any{"type": "Unigram", "unk_id": 0, "vocab": []any{[]any{"<s>", 0}, []any{"a", -1.5}, []any{"ab", -2}}}
		},
	} {
		file := small()
		change(file)
		data, err := json.Marshal(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { try(t, "tokenizer.json", data) })
}

// sentencePiece writes a model of SentencePiece with some pieces.
func sentencePiece(kind uint64, pieces ...string) []byte {
	var m []byte
	for i, text := range pieces {
		p := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), text)
		p = protowire.AppendFixed32(protowire.AppendTag(p, 2, protowire.Fixed32Type), 0xc0000000+uint32(i)<<16)
		types := map[string]uint64{"<unk>": 2, "<s>": 3, "</s>": 3, "[X]": 4, "<0x41>": 6}
		if t := types[text]; t != 0 {
			p = protowire.AppendVarint(protowire.AppendTag(p, 3, protowire.VarintType), t)
		}
		m = protowire.AppendBytes(protowire.AppendTag(m, 1, protowire.BytesType), p)
	}
	trainerSpec := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), kind)
	return protowire.AppendBytes(protowire.AppendTag(m, 2, protowire.BytesType), trainerSpec)
}

func FuzzSentencePiece(f *testing.F) {
	for _, kind := range []uint64{1, 2} {
		f.Add(sentencePiece(kind, "<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a", "[X]", "<0x41>"))
	}
	f.Fuzz(func(t *testing.T, data []byte) { try(t, "tokenizer.model", data) })
}

func FuzzTiktoken(f *testing.F) {
	f.Add([]byte("YQ== 0\nYg== 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) { try(t, "x.tiktoken", data) })
}

// FuzzRoundTrip encodes and decodes with tokenizers of bytes, which must give the text back, and
// twice the same ids: those of the second time come from the cache.
//
// Oracle: round trip.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"Hello, world", " a  b\n\n\tc", "日本語 text 😀", "\xff\xe2\x82", "it's <|endoftext|> 12345"} {
		f.Add([]byte(seed))
	}
	var tokenizers []*tokenizer.File
	for _, pattern := range trainer.Patterns() {
		c := trainer.Default()
		c.VocabSize, c.Pattern = 400, pattern
		tr, err := trainer.New(c)
		require.NoError(f, err)
		tr.AddText([]byte(strings.Repeat(strings.Join(englishWords, " ")+" "+strings.Join(codeLines, ""), 3)))
		r, err := tr.Train(f.Context())
		require.NoError(f, err)
		path := filepath.Join(f.TempDir(), "tokenizer.json")
		require.NoError(f, os.WriteFile(path, r.JSON, 0o644))
		tok, err := tokenizer.Load(path)
		require.NoError(f, err)
		tokenizers = append(tokenizers, tok)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		valid := tokenizer.Valid(text)
		require.True(t, utf8.Valid(valid))
		for _, tok := range tokenizers {
			ids := tok.Encode(nil, text)
			require.Equal(t, string(valid), string(tok.Decode(nil, ids)))
			require.Equal(t, ids, tok.Encode(nil, text), "from the cache")
		}
	})
}
