package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTrainEncodeDecode(t *testing.T) {
	t.Chdir(t.TempDir())
	text := strings.Repeat("The weather was fine, and 365 days were as fine as the first one.\n", 40)
	require.NoError(t, os.WriteFile("corpus.txt", []byte(text), 0o644))

	got := commandtest.Run(t, "tokenizer", "train", "--input", "corpus.txt", "--vocab-size", "280", "--special-token", "<|end|>", "-o", "t.json")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `^t\.json: 280 tokens from 2640 bytes of text with \d+ different words`, got.Out)
	first, err := os.ReadFile("t.json")
	require.NoError(t, err)
	got = commandtest.Run(t, "tokenizer", "train", "--input", "corpus.txt", "--vocab-size", "280", "--special-token", "<|end|>", "-o", "again.json")
	require.Zero(t, got.Code, got.Stderr)
	again, err := os.ReadFile("again.json")
	require.NoError(t, err)
	assert.Equal(t, string(first), string(again))

	got = commandtest.Run(t, "tokenizer", "train", "--input", "corpus.txt", "--vocab-size", "270", "-o", "again.json")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "again.json exists already: give another FILE to -o, or --force to replace it")
	again, err = os.ReadFile("again.json")
	require.NoError(t, err)
	assert.Equal(t, string(first), string(again))
	got = commandtest.Run(t, "tokenizer", "train", "--input", "corpus.txt", "--vocab-size", "270", "-o", "again.json", "--force")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "again.json: 270 tokens")

	got = commandtest.Run(t, "tokenizer", "encode", "-t", "t.json", "the first", "fine day<|end|>")
	require.Zero(t, got.Code, got.Stderr)
	ids := strings.Fields(got.Out)
	assert.Less(t, len(ids), len("the first fine day")/2)
	assert.Equal(t, "0", ids[len(ids)-1], "the special token")
	decoded := commandtest.Run(t, append([]string{"tokenizer", "decode", "-t", "t.json"}, ids...)...)
	assert.Equal(t, "the first fine day<|end|>", decoded.Out)
	decoded = commandtest.Run(t, "tokenizer", "decode", "-t", "t.json", "--skip-special", strings.Join(ids, ", "))
	assert.Equal(t, "the first fine day", decoded.Out)

	got = commandtest.Run(t, "tokenizer", "encode", "-t", "t.json", "--file", "corpus.txt", "-o", "json")
	var encoded struct {
		IDs    []int32
		Tokens []string
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &encoded))
	assert.Len(t, encoded.Tokens, len(encoded.IDs))
	got = commandtest.Run(t, "tokenizer", "encode", "-t", "t.json", "-o", "table", " fine")
	assert.Regexp(t, `(?m)^ *\d+ +Ġfine +" fine"$`, got.Out)

	got = commandtest.Run(t, "tokenizer", "inspect", "t.json")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?m)^tokens +280$`, got.Out)
	assert.Regexp(t, `(?m)^special token +0 <\|end\|>$`, got.Out)
	require.NoError(t, os.Mkdir("model", 0o755))
	require.NoError(t, os.WriteFile(filepath.Join("model", "tokenizer.json"), first, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join("model", "tokenizer_config.json"), []byte(`{"eos_token": "<|end|>", "chat_template": "{{ x }}"}`), 0o644))
	got = commandtest.Run(t, "tokenizer", "inspect", "model", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, `"chat_template": "{{ x }}"`)
	assert.Contains(t, got.Out, `"bos": null`)
	assert.Regexp(t, `"eos": \{\s+"id": 0,\s+"token": "<\|end\|>"`, got.Out)
}

func TestMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("wrong.json", []byte("{\n\"model\": }"), 0o644))
	require.NoError(t, os.WriteFile("a.txt", []byte("a text"), 0o644))
	require.Zero(t, commandtest.Run(t, "tokenizer", "train", "--input", "a.txt", "-o", "t.json").Code)
	tests := []struct {
		give string
		code int
		want []string
	}{
		{"encode hello", 2, []string{"no tokenizer given", "--tokenizer FILE"}},
		{"encode -t missing.json hello", 1, []string{"missing.json"}},
		{"encode -t wrong.json hello", 1, []string{"wrong.json", "line 2"}},
		{"encode -t t.json hello --file a.txt", 2, []string{"want one of them"}},
		{"decode -t t.json 12 x", 2, []string{`the id "x"`, "from 0 to "}},
		{"decode -t t.json 99999999", 2, []string{`the id "99999999"`}},
		{"train", 2, []string{"no text given", "--input PATH"}},
		{"train --input a.txt --format xml", 1, []string{`"xml"`, "jsonl"}},
		{"train --input a.txt --vocab-size 100", 2, []string{"cannot have 100 tokens", "257"}},
		{"train --input a.txt --pattern gtp2", 2, []string{`did you mean "gpt2"`}},
		{"train --input missing.txt", 1, []string{"missing.txt"}},
		{"inspect", 2, []string{"given 0 tokenizers, want one"}},
		{"inspect .", 1, []string{"tokenizer.json", "tokenizer.model"}},
	}
	for _, tt := range tests {
		t.Run(tt.give, func(t *testing.T) {
			got := commandtest.Run(t, append([]string{"tokenizer"}, strings.Fields(tt.give)...)...)
			assert.Equal(t, tt.code, got.Code, got.Stderr)
			for _, want := range tt.want {
				assert.Contains(t, got.Stderr, want)
			}
		})
	}
}
