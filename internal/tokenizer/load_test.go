package tokenizer_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// small is a tokenizer.json with few tokens: <s>, </s>, a, b, ab, the space of bytes, and a word.
func small() map[string]any {
	return map[string]any{
		"added_tokens": []any{
			map[string]any{"id": 0, "content": "<s>", "special": true},
			map[string]any{"id": 1, "content": "</s>", "special": true},
		},
		"normalizer": nil, "pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"post_processor": nil, "decoder": map[string]any{"type": "ByteLevel"},
		"model": map[string]any{
			"type": "BPE", "vocab": map[string]any{"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4, "Ġ": 5, "Ġab": 6},
			"merges": []any{"a b", []any{"Ġ", "ab"}},
		},
	}
}

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		data, ok := content.(string)
		if !ok {
			encoded, err := json.Marshal(content)
			require.NoError(t, err)
			data = string(encoded)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644))
	}
	return dir
}

func TestLoadFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]any{
		"tokenizer.json":          small(),
		"tokenizer_config.json":   map[string]any{"bos_token": map[string]any{"content": "<s>"}, "eos_token": "</s>", "pad_token": nil, "add_bos_token": true, "chat_template": "from the config"},
		"special_tokens_map.json": map[string]any{"pad_token": "</s>", "eos_token": "<s>"},
		"chat_template.jinja":     "{{ messages }}",
	})
	tok, err := tokenizer.Load(dir)
	require.NoError(t, err)
	assert.Equal(t, int32(0), tok.BOS())
	assert.Equal(t, int32(1), tok.EOS(), "the configuration comes before the map of special tokens")
	assert.Equal(t, int32(1), tok.PAD(), "which completes it")
	assert.Equal(t, "{{ messages }}", tok.ChatTemplate(), "a file of its own comes before the configuration")
	assert.Equal(t, 7, tok.VocabSize())
	assert.Equal(t, []int32{0, 4, 6, 1}, tok.EncodePrompt(nil, []byte("ab ab</s>")))
	assert.Equal(t, "ab ab", string(tok.DecodeText(nil, []int32{0, 4, 6, 1})))
	assert.Equal(t, "<s>ab\uFFFD", string(tok.Decode(nil, []int32{0, 4, 99})))
	id, ok := tok.ID("Ġab")
	assert.True(t, ok)
	assert.Equal(t, int32(6), id)

	copied := t.TempDir()
	require.NoError(t, tok.Save(copied))
	again, err := tokenizer.Load(copied)
	require.NoError(t, err)
	assert.Equal(t, tok.Name(), again.Name())
	assert.Equal(t, tok.Raw(), again.Raw())

	alone, err := tokenizer.Load(filepath.Join(dir, "tokenizer.json"))
	require.NoError(t, err)
	assert.Equal(t, int32(1), alone.EOS(), "found by its name")
	assert.Empty(t, alone.ChatTemplate())
	assert.Equal(t, []int32{4}, alone.EncodePrompt(nil, []byte("ab")))

	_, err = tokenizer.Load(t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = tokenizer.Load(filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestChatTemplates(t *testing.T) {
	t.Parallel()
	list := []any{map[string]any{"name": "tool_use", "template": "x"}, map[string]any{"name": "default", "template": "y"}}
	tok, err := tokenizer.Load(folder(t, map[string]any{"tokenizer.json": small(), "tokenizer_config.json": map[string]any{"chat_template": list}}))
	require.NoError(t, err)
	assert.Equal(t, "y", tok.ChatTemplate())
	assert.Equal(t, int32(-1), tok.EOS(), "a configuration without a token means that there is none")
}

// TestConfiguredTokens checks tokens that only the configuration has, as beside models of
// SentencePiece.
func TestConfiguredTokens(t *testing.T) {
	t.Parallel()
	model := string(sentencePiece(2, "<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁ab"))
	plain, err := tokenizer.Load(folder(t, map[string]any{"tokenizer.model": model}))
	require.NoError(t, err)
	config := map[string]any{"eos_token": "<|end|>", "added_tokens_decoder": map[string]any{
		"1": map[string]any{"content": "<s>", "special": true},
		"8": map[string]any{"content": "<|end|>", "special": true},
	}}
	tok, err := tokenizer.Load(folder(t, map[string]any{"tokenizer.model": model, "tokenizer_config.json": config}))
	require.NoError(t, err)
	assert.Equal(t, int32(8), tok.EOS())
	assert.Equal(t, []int32{1, 7, 8}, tok.EncodePrompt(nil, []byte("ab<|end|>")))
	assert.Equal(t, "ab", string(tok.DecodeText(nil, []int32{7, 8})))
	assert.NotEqual(t, plain.Name(), tok.Name(), "they encode differently")

	config["added_tokens_decoder"] = map[string]any{"7": map[string]any{"content": "<|end|>"}}
	_, err = tokenizer.Load(folder(t, map[string]any{"tokenizer.model": model, "tokenizer_config.json": config}))
	require.ErrorContains(t, err, `"<|end|>" with the id 7, which is that of "▁ab"`)
}

func TestAddedTokens(t *testing.T) {
	t.Parallel()
	with := func(a map[string]any) *tokenizer.File {
		f := small()
		f["added_tokens"] = append(f["added_tokens"].([]any), a)
		tok, err := tokenizer.Load(folder(t, map[string]any{"tokenizer.json": f}))
		require.NoError(t, err)
		return tok
	}
	single := with(map[string]any{"id": 7, "content": "aa", "single_word": true})
	assert.Equal(t, []int32{7, 5, 7}, single.Encode(nil, []byte("aa aa")))
	assert.Equal(t, []int32{2, 2, 4}, single.Encode(nil, []byte("aaab")))
	strips := with(map[string]any{"id": 7, "content": "<x>", "lstrip": true, "rstrip": true, "special": true})
	assert.Equal(t, []int32{2, 7, 3}, strips.Encode(nil, []byte("a \n<x>  \t b")))
	plain := with(map[string]any{"id": 7, "content": "<x>"})
	assert.Equal(t, []int32{2, 5, 7, 5, 3}, plain.Encode(nil, []byte("a <x> b")))
	assert.Equal(t, "a<x>b", string(plain.DecodeText(nil, []int32{2, 7, 3})), "it is no special token")
}

func TestUnsupportedPartsAreNamed(t *testing.T) {
	t.Parallel()
	model := func(change map[string]any) map[string]any {
		m := maps.Clone(small()["model"].(map[string]any))
		maps.Copy(m, change)
		return m
	}
	tests := []struct {
		name, part string
		give       any
		want       []string
	}{
		{"model", "model", map[string]any{"type": "WordPiece"}, []string{"model:", `"WordPiece"`, "BPE, Unigram"}},
		{"dropout", "model", model(map[string]any{"dropout": 0.1}), []string{"dropout 0.1"}},
		{"suffix", "model", model(map[string]any{"end_of_word_suffix": "</w>"}), []string{`end_of_word_suffix "</w>"`}},
		{"unknown key", "model", model(map[string]any{"temperature": 1}), []string{"model:", `"temperature"`}},
		{"normalizer", "normalizer", map[string]any{"type": "BertNormalizer"}, []string{"normalizer:", `"BertNormalizer"`, "NFC"}},
		{"normalizer in a sequence", "normalizer", map[string]any{"type": "Sequence", "normalizers": []any{map[string]any{"type": "NFC"}, map[string]any{"type": "Nmt"}}}, []string{"normalizers[1]", `"Nmt"`}},
		{"replace by an expression", "normalizer", map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": " {2,}"}, "content": " "}, []string{`" {2,}"`}},
		{"pattern", "pre_tokenizer", map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `\w+`}, "behavior": "Isolated", "invert": false}, []string{`\\w+`, "llama3"}},
		{"pre-tokenizer", "pre_tokenizer", map[string]any{"type": "UnicodeScripts"}, []string{`"UnicodeScripts"`}},
		{"after ByteLevel", "pre_tokenizer", map[string]any{"type": "Sequence", "pretokenizers": []any{map[string]any{"type": "ByteLevel"}, map[string]any{"type": "Digits", "individual_digits": true}}}, []string{"pretokenizers[1]", "ByteLevel must be the last"}},
		{"post-processor", "post_processor", map[string]any{"type": "BertProcessing"}, []string{"post_processor:", `"BertProcessing"`}},
		{"decoder", "decoder", map[string]any{"type": "CTC"}, []string{"decoder:", `"CTC"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := small()
			f[tt.part] = tt.give
			dir := folder(t, map[string]any{"tokenizer.json": f})
			_, err := tokenizer.Load(dir)
			require.ErrorContains(t, err, filepath.Join(dir, "tokenizer.json"))
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
	f := small()
	f["model"] = map[string]any{"type": "WordPiece"}
	_, err := tokenizer.Load(folder(t, map[string]any{"tokenizer.json": f}))
	var unsupported *tokenizer.UnsupportedError
	assert.True(t, errors.As(err, &unsupported))
}

func TestWrongFiles(t *testing.T) {
	t.Parallel()
	replaced := func(old, with string) string {
		data, err := json.Marshal(small())
		require.NoError(t, err)
		text := strings.Replace(string(data), old, with, 1)
		require.NotEqual(t, string(data), text)
		return text
	}
	tests := []struct {
		name  string
		files map[string]any
		want  []string
	}{
		{"no JSON", map[string]any{"tokenizer.json": "{\n\n\"model\": ["}, []string{"line 3"}},
		{"no model", map[string]any{"tokenizer.json": "{}"}, []string{"model: there is none"}},
		{"a merge without its token", map[string]any{"tokenizer.json": replaced(`"a b"`, `"b a"`)}, []string{"merges[0]", `"ba"`}},
		{"a merge of three", map[string]any{"tokenizer.json": replaced(`"a b"`, `"a b c"`)}, []string{`"a b c"`}},
		{"an id twice", map[string]any{"tokenizer.json": replaced(`"b":3`, `"b":2`)}, []string{"id 2", `"a" and of "b"`}},
		{"an id below 0", map[string]any{"tokenizer.json": replaced(`"b":3`, `"b":-3`)}, []string{`"b" has id -3`}},
		{"a special token that is none", map[string]any{"tokenizer.json": small(), "tokenizer_config.json": `{"eos_token": "<end>"}`}, []string{"tokenizer_config.json", `eos_token is "<end>"`}},
		{"a wrong configuration", map[string]any{"tokenizer.json": small(), "tokenizer_config.json": `{"eos_token": }`}, []string{"tokenizer_config.json", "line 1"}},
		{"no SentencePiece", map[string]any{"tokenizer.model": "\x00\x01\x02"}, []string{"no model of SentencePiece", "byte 0"}},
		{"an empty file", map[string]any{"tokenizer.model": ""}, []string{"no pieces"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tokenizer.Load(folder(t, tt.files))
			require.Error(t, err)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

// TestEncodeRest checks that a text in parts, cut after lines, has the ids of the whole.
func TestEncodeRest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gpt2", "llama2", "llama3", "mistral"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok, err := tokenizer.Load(familyFile(t, name))
			require.NoError(t, err)
			for _, doc := range mixedText(11, 20_000) {
				first, rest := string(doc)+"end\n", "The last"
				want := tok.Encode(nil, []byte(first+rest))
				require.Equal(t, want, tok.EncodeRest(tok.Encode(nil, []byte(first)), []byte(rest)), "%q", first)
			}
		})
	}
}
