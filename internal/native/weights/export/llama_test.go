package export_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights/export"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"
)

// seen is what llama.cpp and Hugging Face's reader find in a GGUF file.
type seen struct {
	Tokens, Text []int32
	Values       map[string]any
	Tensors      map[string]struct {
		Shape []int
		Type  export.Type
	}
}

// read runs llama.cpp: it continues the tokens 7, 8, 9 with count more, and encodes a text.
func read(t *testing.T, count int, text string, files []string) map[string]seen {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	packages := filepath.Join(cache, "primus-fl", "npm", "node_modules")
	for _, name := range []string{"@huggingface/gguf", "node-llama-cpp", "@node-llama-cpp/linux-x64"} {
		if _, err := os.Stat(filepath.Join(packages, name)); err != nil {
			t.Skip(name + " is not installed: run scripts/install-test-deps.sh")
		}
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{"testdata/llama.mjs", packages, strconv.Itoa(count), "7,8,9", text}, files...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var got map[string]seen
	require.NoError(t, json.Unmarshal(out, &got))
	return got
}

// llama.cpp continues a prompt as the exported models do, and Hugging Face's reader of GGUF finds
// what was written.
func TestLlamaCppContinues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	models, files := map[string]*model.Model{}, []string{}
	for name, cfg := range architectures() {
		cfg.InitMethodStd = 0.3 // so that not one token is always the most likely
		m := newModel(t, cfg)
		file := filepath.Join(dir, name+".gguf")
		_, err := export.GGUF(file, exported(t, m), export.GGUFSettings{Type: export.F32, Name: name})
		require.NoError(t, err)
		models[file] = m
		files = append(files, file)
	}
	const text = "func main() {\n\treturn 12 + é"
	got := read(t, length-3, text, files)
	for file, m := range models {
		name, have := filepath.Base(file), got[file]
		want := greedy(t, m, []int32{7, 8, 9})
		assert.Equal(t, want, have.Tokens, name)
		assert.Greater(t, len(slices.Compact(slices.Sorted(slices.Values(want)))), 3, name)
		assert.Equal(t, tokenizer.Byte{}.Encode(nil, []byte(text)), have.Text, name)
		arch, _ := have.Values["general.architecture"].(string)
		assert.Equal(t, float64(length), have.Values[arch+".context_length"], name)
		assert.Equal(t, []int{64, 256}, have.Tensors["token_embd.weight"].Shape, name)
		assert.Equal(t, export.F32, have.Tensors["output_norm.weight"].Type, name)
	}
}

// corpus is what tokenizers learn from and encode.
const corpus = "func main() {\n\treturn 12345 + len(café)  // naïve\n}\n\nIt's the  end: 3.14, they'll 日本 go 😀 on; the thing then.\r\n"

// llama.cpp encodes text as the exported tokenizers do.
func TestLlamaCppEncodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokenizers, files := map[string]*tokenizer.File{}, []string{}
	addFile := func(name, suffix string, text []byte) {
		path := filepath.Join(dir, name+suffix)
		require.NoError(t, os.WriteFile(path, text, 0o644))
		tok, err := tokenizer.Load(path)
		require.NoError(t, err)
		cfg := llama()
		cfg.VocabSize = tok.VocabSize() + 3
		m := exported(t, newModel(t, cfg))
		m.Tokenizer = tok
		file := filepath.Join(dir, name+".gguf")
		_, err = export.GGUF(file, m, export.GGUFSettings{Type: export.F16, Name: name})
		require.NoError(t, err)
		tokenizers[file] = tok
		files = append(files, file)
	}
	add := func(name string, text []byte) { addFile(name, ".json", text) }
	for _, pattern := range trainer.Patterns() {
		c := trainer.Default()
		c.VocabSize, c.Pattern = 320, pattern
		tr, err := trainer.New(c)
		require.NoError(t, err)
		for range 3 {
			tr.AddText([]byte(corpus))
		}
		r, err := tr.Train(t.Context())
		require.NoError(t, err)
		add(pattern, r.JSON)
	}
	add("llama2", characters(t, func(f map[string]any) {
		f["normalizer"] = map[string]any{"type": "Sequence", "normalizers": []any{
			map[string]any{"type": "Prepend", "prepend": "▁"},
			map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"},
		}}
	}))
	add("mistral", characters(t, func(f map[string]any) {
		f["pre_tokenizer"] = map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}
	}))
	addFile("sentencepiece", ".model", pieces(t, characters(t, func(map[string]any) {}), 2, 0))
	addFile("tiktoken", ".tiktoken", tiktoken())
	got := read(t, 1, corpus, files)
	for file, tok := range tokenizers {
		want := tok.Encode(nil, []byte(corpus))
		assert.Less(t, len(want), len(corpus)*4/5, file)
		assert.Equal(t, want, got[file].Text, filepath.Base(file))
	}
}

// tiktoken returns a file with as many tokens as GPT-2's: bytes, and the beginnings of words of the
// corpus.
func tiktoken() []byte {
	var file bytes.Buffer
	seen := map[string]bool{}
	add := func(token string) {
		if !seen[token] {
			fmt.Fprintf(&file, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), len(seen))
			seen[token] = true
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	for _, word := range strings.Fields(corpus) {
		for end := 2; end <= len(word); end++ {
			add(" " + word[:end-1])
			add(word[:end])
		}
	}
	for i := 0; len(seen) < 50256; i++ {
		add(fmt.Sprintf("unused %d", i))
	}
	return file.Bytes()
}

func TestSentencePieceThatLlamaCppCannotRead(t *testing.T) {
	t.Parallel()
	text := characters(t, func(map[string]any) {})
	for want, data := range map[string][]byte{
		"tokenizer.model: given a model of type unigram, want BPE": pieces(t, text, 1, 0),
		"removes spaces before it encodes":                         pieces(t, text, 2, 1),
	} {
		path := filepath.Join(t.TempDir(), "tokenizer.model")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		tok, err := tokenizer.Load(path)
		require.NoError(t, err)
		cfg := llama()
		cfg.VocabSize = tok.VocabSize()
		m := exported(t, newModel(t, cfg))
		m.Tokenizer = tok
		file := filepath.Join(t.TempDir(), "model.gguf")
		_, err = export.GGUF(file, m, export.GGUFSettings{Type: export.F16})
		require.ErrorContains(t, err, want)
		assert.NoFileExists(t, file)
	}
}

// pieces returns a tokenizer.json of characters as a model of SentencePiece.
func pieces(t *testing.T, text []byte, kind, removeSpaces uint64) []byte {
	t.Helper()
	var file struct {
		Model struct {
			Vocab  map[string]int
			Merges []string
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	scores := map[string]float32{}
	for i, m := range slices.Backward(file.Model.Merges) {
		scores[strings.Replace(m, " ", "", 1)] = float32(-i)
	}
	tokens := make([]string, len(file.Model.Vocab))
	for token, id := range file.Model.Vocab {
		tokens[id] = token
	}
	var all []byte
	part := func(number protowire.Number, content []byte) {
		all = protowire.AppendBytes(protowire.AppendTag(all, number, protowire.BytesType), content)
	}
	number := func(to []byte, field protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), v)
	}
	for id, token := range tokens {
		kind, score := uint64(1), float32(-len(file.Model.Merges))
		switch {
		case id == 0:
			kind = 2
		case id < 3:
			kind = 3
		case len(token) == 6 && strings.HasPrefix(token, "<0x"):
			kind = 6
		}
		if s, merged := scores[token]; merged {
			score = s
		}
		piece := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), token)
		piece = protowire.AppendFixed32(protowire.AppendTag(piece, 2, protowire.Fixed32Type), math.Float32bits(score))
		part(1, number(piece, 3, kind))
	}
	part(2, number(number(nil, 3, kind), 35, 1))        // with bytes
	part(3, number(number(nil, 3, 1), 4, removeSpaces)) // with a space before a text
	return all
}

// characters is the tokenizer.json of a tokenizer of characters with bytes for those that it lacks,
// with a normalizer or a pre-tokenizer that turns spaces into ▁.
func characters(t *testing.T, spaces func(file map[string]any)) []byte {
	t.Helper()
	vocab := map[string]int{"<unk>": 0, "<s>": 1, "</s>": 2}
	put := func(token string) {
		if _, ok := vocab[token]; !ok {
			vocab[token] = len(vocab)
		}
	}
	for b := range 256 {
		put(fmt.Sprintf("<0x%02X>", b))
	}
	for _, c := range "▁abcdefghijklmnopqrstuvwxyzIT'.,:;(){}+/0123456789é" {
		put(string(c))
	}
	var merges []string
	for _, merge := range strings.Fields("▁+t h+e ▁t+he i+n ▁+e r+e t+u re+tu r+n retu+rn ▁t+h ▁the+n 1+2 12+3 in+g c+a ▁▁+▁ ▁+▁") {
		left, right, _ := strings.Cut(merge, "+")
		put(left)
		put(right)
		put(left + right)
		merges = append(merges, left+" "+right)
	}
	special := []any{}
	for id, token := range []string{"<unk>", "<s>", "</s>"} {
		special = append(special, map[string]any{
			"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true,
		})
	}
	file := map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": special,
		"normalizer": nil, "pre_tokenizer": nil, "post_processor": nil, "decoder": nil,
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": "<unk>", "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": true, "byte_fallback": true, "ignore_merges": false, "vocab": vocab, "merges": merges,
		},
	}
	spaces(file)
	text, err := json.Marshal(file)
	require.NoError(t, err)
	return text
}
