package trainer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer/trainer"
)

// train returns what is learned from a text that is read, or added in one piece.
func train(t *testing.T, c trainer.Config, text string, read bool) *trainer.Result {
	t.Helper()
	tr, err := trainer.New(c)
	require.NoError(t, err)
	if read {
		require.NoError(t, tr.Add(t.Context(), strings.NewReader(text)))
	} else {
		tr.AddText([]byte(text))
	}
	assert.Equal(t, int64(len(text)), tr.Bytes())
	r, err := tr.Train(t.Context())
	require.NoError(t, err)
	return r
}

// TestReadingInParts checks that a text of several parts gives what it gives in one piece, also
// where a part ends within a word or a character.
func TestReadingInParts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, "wörd%d, ", i%700)
	}
	c := trainer.Default()
	c.VocabSize = 600
	whole := train(t, c, b.String(), false)
	assert.Equal(t, 600, whole.Tokens)
	assert.Equal(t, string(whole.JSON), string(train(t, c, b.String(), true).JSON))
}

// TestForgetting checks that rare words are forgotten beyond the limit, and that frequent ones are
// learned all the same.
func TestForgetting(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "common words and x%dy ", i)
		fmt.Fprintf(&b, "%s ", strings.Repeat(string(rune('a'+i%26)), 1+i/200))
	}
	c := trainer.Default()
	c.VocabSize, c.MaxWords, c.Pattern = 300, 1000, "gpt2"
	r := train(t, c, b.String(), false)
	assert.LessOrEqual(t, r.Words, 1000)
	assert.Positive(t, r.Forgotten)
	assert.Contains(t, string(r.JSON), `"Ġcommon":`)
	assert.Equal(t, string(r.JSON), string(train(t, c, b.String(), false).JSON))
}

func TestTooLittleText(t *testing.T) {
	t.Parallel()
	r := train(t, trainer.Default(), "abab", false)
	assert.Equal(t, 258, r.Tokens, "257 and ab")
	assert.Equal(t, 8192, r.Wanted)
	tr, err := trainer.New(trainer.Default())
	require.NoError(t, err)
	_, err = tr.Train(t.Context())
	require.ErrorContains(t, err, "no text")
}

func TestConfigs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*trainer.Config)
		want   []string
	}{
		{"size", func(c *trainer.Config) { c.VocabSize = 256 }, []string{"256 tokens", "from 257"}},
		{"pattern", func(c *trainer.Config) { c.Pattern = "lama3" }, []string{`"lama3"`, `did you mean "llama3"?`}},
		{"special tokens", func(c *trainer.Config) { c.SpecialTokens = []string{"<a>", "<a>"} }, []string{`"<a>"`, "twice"}},
		{"limits", func(c *trainer.Config) { c.MinCount, c.VocabSize = 0, 1 }, []string{"least count is 0", "1 tokens"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := trainer.Default()
			tt.change(&c)
			_, err := trainer.New(c)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
	tr, err := trainer.New(trainer.Config{VocabSize: 300, Pattern: "gpt2", SpecialTokens: []string{"the"}, MinCount: 1, MaxTokenLength: 9, MaxWords: 1000})
	require.NoError(t, err)
	tr.AddText([]byte("the the"))
	_, err = tr.Train(t.Context())
	require.ErrorContains(t, err, `special token "the"`)
}
