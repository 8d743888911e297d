package tokenizer_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// tiktokenFile writes a file with so many tokens: the bytes, words, and all beginnings of words.
func tiktokenFile(t *testing.T, name string, size int) (path string, ranks map[string]int32) {
	t.Helper()
	ranks = map[string]int32{}
	var b strings.Builder
	add := func(token string) {
		if _, ok := ranks[token]; ok || len(ranks) == size {
			return
		}
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), len(ranks))
		ranks[token] = int32(len(ranks))
	}
	for c := range 256 {
		add(string([]byte{byte(c)}))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for len(ranks) < size {
		word := " " + pick(rng, englishWords) + pick(rng, englishWords) + pick(rng, englishWords)
		begin := rng.IntN(2)
		for end := begin + 2; end <= len(word); end++ {
			add(word[begin:end])
		}
	}
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	return path, ranks
}

// naive encodes a word as tiktoken does: the adjacent parts whose text has the lowest rank become
// one, until there are none.
func naive(ranks map[string]int32, word string) []int32 {
	if id, ok := ranks[word]; ok {
		return []int32{id}
	}
	var parts []string
	for i := range len(word) {
		parts = append(parts, word[i:i+1])
	}
	for {
		best, at := int32(1<<30), -1
		for i := range len(parts) - 1 {
			if rank, ok := ranks[parts[i]+parts[i+1]]; ok && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	var ids []int32
	for _, part := range parts {
		ids = append(ids, ranks[part])
	}
	return ids
}

func TestTiktoken(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		tokens   int
		bos, eos string
	}{
		{"gpt2.tiktoken", 50256, "", "<|endoftext|>"},
		{"tokenizer.model", 128000, "<|begin_of_text|>", "<|end_of_text|>"}, // as in the folders of Llama 3
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path, ranks := tiktokenFile(t, tt.name, tt.tokens)
			tok, err := tokenizer.Load(filepath.Dir(path))
			require.NoError(t, err)
			assert.Equal(t, "tiktoken", tok.Format())
			eos, _ := tok.Token(tok.EOS())
			assert.Equal(t, tt.eos, eos)
			assert.GreaterOrEqual(t, tok.EOS(), int32(tt.tokens))
			prompt := tok.EncodePrompt(nil, nil)
			if tt.bos == "" {
				assert.Empty(t, prompt)
			} else {
				assert.Equal(t, []int32{tok.BOS()}, prompt)
				assert.Equal(t, tt.bos, string(tok.Decode(nil, prompt)))
			}
			rng := rand.New(rand.NewPCG(3, 4))
			for range 2000 {
				word := " "
				for range 1 + rng.IntN(12) {
					word += pick(rng, englishWords)
				}
				text := "\xf0\x9f\x98\x80" + word + tt.eos
				want := append(naive(ranks, "😀"), naive(ranks, word)...)
				got := tok.Encode(nil, []byte(text))
				require.Equal(t, append(want, tok.EOS()), got, "%q", text)
				require.Equal(t, text, string(tok.Decode(nil, got)))
				require.Equal(t, strings.TrimSuffix(text, tt.eos), string(tok.DecodeText(nil, got)))
			}
		})
	}
}

func TestTiktokenErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, give string
		want       []string
	}{
		{"unknown size", "YQ== 0\nYg== 1\n", []string{"2 tokens", "pattern", "Llama 3 (128000)"}},
		{"a rank twice", "YQ== 0\nYg== 0\n", []string{"line 2", "rank 0 is there before"}},
		{"no base64", "YQ== 0\n!! 1\n", []string{"line 2", `"!!"`}},
		{"no rank", "YQ== 0\nYg==\n", []string{"line 2", "a space and a rank"}},
		{"a rank far away", "YQ== 0\nYg== 70000\n", []string{"line 2", "70000"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.tiktoken")
			require.NoError(t, os.WriteFile(path, []byte(tt.give), 0o644))
			_, err := tokenizer.Load(path)
			require.ErrorContains(t, err, path)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}
