package tokenizer_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer"
)

func TestCutter(t *testing.T) {
	t.Parallel()
	tokens := [][]byte{[]byte("▁the"), []byte("▁▁"), []byte("ing"), []byte("é▁"), nil, []byte("(")}
	c := tokenizer.NewCutter(tokens, '▁')
	parts := func(text string) (all []string) {
		for len(text) > 0 {
			n := c.Next([]byte(text))
			all, text = append(all, text[:n]), text[n:]
		}
		return all
	}
	assert.Equal(t, []string{"▁the", "▁the"}, parts("▁the▁the"))
	assert.Equal(t, []string{"▁▁the"}, parts("▁▁the"))
	assert.Equal(t, []string{"▁th", "ing", "("}, parts("▁thing("))
	assert.Equal(t, []string{"é▁"}, parts("é▁"), "a token has both")
	assert.Equal(t, []string{"中", "▁"}, parts("中▁"))
	assert.Equal(t, []string{"中文x", "y"}, parts("中文xy"))
}

// counting encodes a word as its bytes and counts its calls.
type counting struct{ calls int }

func (c *counting) Encode(dst []int32, word []byte) []int32 {
	c.calls++
	for _, b := range word {
		dst = append(dst, int32(b))
	}
	return dst
}

// TestCache checks words of every length, more of them than the cache keeps.
func TestCache(t *testing.T) {
	t.Parallel()
	cache, model := tokenizer.NewCache(), &counting{}
	check := func(word []byte) {
		want := make([]int32, len(word))
		for i, b := range word {
			want[i] = int32(b)
		}
		require.Equal(t, append([]int32{-1}, want...), cache.Encode(model, []int32{-1}, word))
	}
	for n := range 200 {
		word := bytes.Repeat([]byte{byte(n)}, n)
		check(word)
		before := model.calls
		check(word)
		if n > 0 && n <= 128 {
			require.Equal(t, before, model.calls, "a word of %d bytes comes from the cache", n)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300_000 {
		check(fmt.Appendf(nil, "word %d", rng.IntN(200_000)))
	}
}
