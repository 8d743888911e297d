package data_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTokenizeAndInspect(t *testing.T) {
	t.Chdir(t.TempDir())
	var lines strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, "{\"content\": %q}\n", strings.Repeat(fmt.Sprintf("Line %d of a document.\n", i), 1+i%20))
	}
	require.NoError(t, os.WriteFile("a.jsonl", []byte(lines.String()), 0o644))
	require.NoError(t, os.WriteFile("b.txt", []byte("the last document"), 0o644))
	got := commandtest.Run(t, "tokenizer", "train", "--input", "a.jsonl", "--text-key", "content", "--vocab-size", "300", "-o", "t.json")
	require.Zero(t, got.Code, got.Stderr)

	var first []byte
	for _, workers := range []string{"1", "2", "5"} {
		got = commandtest.Run(t, "data", "tokenize", "--input", "a.jsonl", "--input", "b.txt", "--text-key", "content", "-t", "t.json", "-o", "set"+workers, "--workers", workers)
		require.Zero(t, got.Code, got.Stderr)
		assert.Regexp(t, `^set\d\.bin, set\d\.idx: 2001 documents, \d+ tokens of uint16 from \d+ bytes, in `, strings.ReplaceAll(got.Out, ",0", ""))
		bin, err := os.ReadFile("set" + workers + ".bin")
		require.NoError(t, err)
		idx, err := os.ReadFile("set" + workers + ".idx")
		require.NoError(t, err)
		if first == nil {
			first = append(bin, idx...)
		}
		assert.Equal(t, first, append(bin, idx...), "workers do not matter")
	}

	got = commandtest.Run(t, "data", "inspect", "set1.idx", "-t", "t.json", "--show", "2000")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?m)^documents +2001$`, got.Out)
	assert.Regexp(t, `(?m)^unknown tokens +0$`, got.Out)
	assert.Contains(t, got.Out, "the last document<|endoftext|>")
	got = commandtest.Run(t, "data", "inspect", "set1", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var r struct {
		Documents, Tokens int
		DType             string
		LargestID         int `json:"largest_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &r))
	assert.Equal(t, 2001, r.Documents)
	assert.Equal(t, "uint16", r.DType)
	assert.Less(t, r.LargestID, 300)

	got = commandtest.Run(t, "data", "inspect", "set1", "-t", "byte")
	assert.Equal(t, 1, got.Code)
	assert.Regexp(t, `tokens that the tokenizer does not have, up to the id 2\d\d`, got.Stderr)
}

func TestTokenizeRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("good.jsonl", []byte(`{"text": "abc"}`), 0o644))
	require.NoError(t, os.WriteFile("bad.jsonl", []byte("{\"text\": \"abc\"}\noops\n"), 0o644))
	byBytes := []string{"data", "tokenize", "-t", "byte", "--append-eod=false"}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"data", "tokenize"}, 2, "no text given: want --input PATH"},
		{[]string{"data", "tokenize", "--input", "good.jsonl"}, 2, "no tokenizer given"},
		{append(byBytes, "--input", "good.jsonl"), 2, "no dataset named: want -o PREFIX"},
		{append(byBytes, "--input", "good.jsonl", "-o", "x", "--workers", "-1"), 2, "--workers: given -1"},
		{append(byBytes, "--input", "good.jsonl", "-o", "x", "--format", "csv"), 2, `--format: given "csv"`},
		{[]string{"data", "tokenize", "-t", "byte", "--input", "good.jsonl", "-o", "x"}, 2, "has no token that ends texts"},
		{append(byBytes, "--input", "none", "-o", "x"), 1, "--input: "},
		{append(byBytes, "--input", "bad.jsonl", "-o", "x"), 1, "--input: bad.jsonl: line 2 (byte 16)"},
		{append(byBytes, "--input", "good.jsonl", "-o", "none/x"), 1, "none"},
		{[]string{"data", "inspect", "none"}, 1, "none.idx"},
		{[]string{"data", "inspect", "x", "--show", "1"}, 2, "--show needs --tokenizer"},
	} {
		got := commandtest.Run(t, tt.args...)
		assert.Equal(t, tt.code, got.Code, tt.args)
		assert.Contains(t, got.Stderr, tt.want, tt.args)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Len(t, left, 2, "no part of a dataset is left")

	good := append(byBytes, "--input", "good.jsonl", "-o", "x")
	require.Zero(t, commandtest.Run(t, good...).Code)
	got := commandtest.Run(t, good...)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "x.idx exists already: give another PREFIX, or --force to replace the dataset")
	require.Zero(t, commandtest.Run(t, append(good, "--force")...).Code)
	got = commandtest.Run(t, "data", "inspect", "x", "-t", "byte", "--show", "7")
	assert.Contains(t, got.Stderr, "--show: given 7, and x has 1 sequence, from 0")
}
