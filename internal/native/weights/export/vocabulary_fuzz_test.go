package export

import (
	"testing"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/stretchr/testify/require"
)

// FuzzVocabulary writes the vocabulary of any tokenizer.json: it has a token for each id of the
// model, and costs in proportion to the length, or it is an error.
func FuzzVocabulary(f *testing.F) {
	for _, text := range []string{
		`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}, "pre_tokenizer": {"type": "ByteLevel"}, "added_tokens": [{"id": 3, "content": "<s>", "special": true}]}`,
		`{"model": {"type": "BPE", "vocab": {"<0x00>": 0, "a": 1}, "merges": [["a", "b"]], "byte_fallback": true, "unk_token": "a"}, "normalizer": {"type": "Prepend"}}`,
		`{"model": {"type": "BPE", "vocab": {"a": -1}}}`, `{"model": {"type": "BPE", "vocab": {"a": 99}, "merges": [1]}}`, `{"model": {"type": "BPE", "byte_fallback": true}, "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "never"}}`,
		`{"model": {"type": "BPE"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "a"}}]}}`, "null",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g := &ggufWriter{c: model.Config{VocabSize: 16}}
		var err error
		primustest.Cost(t, len(text), 1000, func() { err = g.writeFile(tokenizer.Raw{Name: "tokenizer.json", Data: text}, &tokenizer.File{}) })
		if err != nil {
			return
		}
		for _, v := range g.values {
			if tokens, ok := v.Value.([]string); ok && v.Key == "tokenizer.ggml.tokens" {
				require.Len(t, tokens, 16)
				for _, token := range tokens {
					require.NotEmpty(t, token)
				}
			}
		}
	})
}
