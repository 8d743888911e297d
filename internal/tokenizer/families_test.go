package tokenizer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"
)

// families are tokenizers in the shape of those of known models, learned from generated text.
var families = map[string]func(t *testing.T) map[string]any{
	"gpt2": func(t *testing.T) map[string]any {
		return byteLevelFile(t, "gpt2")
	},
	"llama3": func(t *testing.T) map[string]any {
		f := byteLevelFile(t, "llama3")
		f["model"].(map[string]any)["ignore_merges"] = true
		f["post_processor"] = map[string]any{"type": "Sequence", "processors": []any{f["post_processor"], template("<s>", 2)}}
		return f
	},
	"qwen2": func(t *testing.T) map[string]any {
		f := byteLevelFile(t, "qwen2")
		f["normalizer"] = map[string]any{"type": "NFC"}
		return f
	},
	"gpt4o":  func(t *testing.T) map[string]any { return byteLevelFile(t, "gpt4o") },
	"tekken": func(t *testing.T) map[string]any { return byteLevelFile(t, "tekken") },
	"llama2": func(t *testing.T) map[string]any {
		f := characterFile(t)
		f["normalizer"] = map[string]any{"type": "Sequence", "normalizers": []any{
			map[string]any{"type": "Prepend", "prepend": "▁"},
			map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"},
		}}
		f["post_processor"] = template("<s>", 1)
		return f
	},
	"mistral": func(t *testing.T) map[string]any {
		f := characterFile(t)
		f["pre_tokenizer"] = map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}
		return f
	},
	"unigram": func(t *testing.T) map[string]any {
		f := characterFile(t)
		vocab := f["model"].(map[string]any)["vocab"].(map[string]any)
		list := make([]any, len(vocab))
		for token, id := range vocab {
			score := -math.Sqrt(float64(id.(int32)) + 1.5) // no sums of these are equal
			list[id.(int32)] = []any{token, score}
		}
		f["model"] = map[string]any{"type": "Unigram", "unk_id": 0, "vocab": list, "byte_fallback": false}
		f["pre_tokenizer"] = map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false}
		return f
	},
}

// template is a post-processor that puts a token before a text.
func template(token string, id int) map[string]any {
	return map[string]any{
		"type":   "TemplateProcessing",
		"single": []any{map[string]any{"SpecialToken": map[string]any{"id": token, "type_id": 0}}, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}},
		"pair":   []any{}, "special_tokens": map[string]any{token: map[string]any{"id": token, "ids": []any{id}, "tokens": []any{token}}},
	}
}

// familyFile writes the tokenizer.json of a family into a folder and returns its path.
func familyFile(t *testing.T, name string) string {
	t.Helper()
	data, err := json.Marshal(families[name](t))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

// byteLevelFile is what our trainer makes of generated text.
func byteLevelFile(t *testing.T, pattern string) map[string]any {
	t.Helper()
	c := trainer.Default()
	c.VocabSize, c.Pattern, c.SpecialTokens = 2000, pattern, []string{"<|endoftext|>", "<pad>", "<s>", "</s>", "<|im_start|>"}
	tr, err := trainer.New(c)
	require.NoError(t, err)
	for _, doc := range mixedText(7, 300_000) {
		tr.AddText(doc)
	}
	r, err := tr.Train(t.Context())
	require.NoError(t, err)
	var f map[string]any
	require.NoError(t, json.Unmarshal(r.JSON, &f))
	f["added_tokens"] = append(f["added_tokens"].([]any),
		map[string]any{"id": 2000, "content": "<|eot|>", "single_word": false, "lstrip": true, "rstrip": true, "normalized": false, "special": true},
		map[string]any{"id": 2001, "content": "snake_case", "single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "special": false})
	return f
}

// characterFile is a tokenizer of characters with fallback to bytes, as SentencePiece makes them.
func characterFile(t *testing.T) map[string]any {
	t.Helper()
	ids, counts := map[rune]int32{}, map[string]int64{}
	var s trainer.Settings
	for _, doc := range mixedText(8, 300_000) {
		text := strings.ReplaceAll(" "+string(tokenizer.Valid(doc)), " ", "▁")
		for _, r := range text {
			if _, ok := ids[r]; !ok && len(ids) < 400 {
				ids[r] = int32(len(s.Texts))
				s.Texts = append(s.Texts, []byte(string(r)))
			}
		}
		for _, word := range strings.SplitAfter(text, "▁") {
			counts["▁"+strings.TrimSuffix(word, "▁")]++
		}
	}
	counts["▁▁▁▁▁▁▁▁"] = 1000
	var words []trainer.Word
	for word, n := range counts {
		var symbols []int32
		for _, r := range word {
			if id, ok := ids[r]; ok {
				symbols = append(symbols, id)
			}
		}
		words = append(words, trainer.Word{Symbols: symbols, Count: n})
	}
	s.Size, s.MinCount = 2000, 2
	result, err := trainer.Learn(t.Context(), words, s)
	require.NoError(t, err)

	vocab := map[string]any{}
	token := func(text string) {
		if _, ok := vocab[text]; !ok {
			vocab[text] = int32(len(vocab))
		}
	}
	for _, text := range []string{"<unk>", "<s>", "</s>"} {
		token(text)
	}
	for b := range 256 {
		token(fmt.Sprintf("<0x%02X>", b))
	}
	for _, text := range result.Texts {
		token(string(text))
	}
	var merges []any
	for _, m := range result.Merges {
		merges = append(merges, string(bytes.Join([][]byte{result.Texts[m.Left], result.Texts[m.Right]}, []byte(" "))))
	}
	special := func(id int, content string) map[string]any {
		return map[string]any{"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
	}
	return map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "normalizer": nil, "pre_tokenizer": nil, "post_processor": nil,
		"added_tokens": []any{special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")},
		"decoder": map[string]any{"type": "Sequence", "decoders": []any{
			map[string]any{"type": "Replace", "pattern": map[string]any{"String": "▁"}, "content": " "},
			map[string]any{"type": "ByteFallback"}, map[string]any{"type": "Fuse"},
			map[string]any{"type": "Strip", "content": " ", "start": 1, "stop": 0},
		}},
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": "<unk>", "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": true, "byte_fallback": true, "vocab": vocab, "merges": merges,
		},
	}
}
