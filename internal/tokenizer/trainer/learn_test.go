package trainer_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer/trainer"
)

// naive counts all pairs anew for each merge.
func naive(words []trainer.Word, s trainer.Settings) []trainer.Merge {
	texts := slices.Clone(s.Texts)
	var merges []trainer.Merge
	for len(texts) < s.Size {
		counts := map[[2]int32]int64{}
		for _, w := range words {
			for i := range len(w.Symbols) - 1 {
				counts[[2]int32(w.Symbols[i:])] += w.Count
			}
		}
		var best [2]int32
		most := int64(0)
		for p, n := range counts {
			if len(texts[p[0]])+len(texts[p[1]]) > s.MaxLength {
				continue
			}
			if n > most || n == most && (p[0] < best[0] || p[0] == best[0] && p[1] < best[1]) {
				best, most = p, n
			}
		}
		if most < s.MinCount {
			break
		}
		text := slices.Concat(texts[best[0]], texts[best[1]])
		joined := int32(slices.IndexFunc(texts, func(t []byte) bool { return string(t) == string(text) }))
		if joined < 0 {
			joined = int32(len(texts))
			texts = append(texts, text)
		}
		merges = append(merges, trainer.Merge{Left: best[0], Right: best[1], Joined: joined})
		for k, w := range words {
			var symbols []int32
			for i := 0; i < len(w.Symbols); i++ {
				if i+1 < len(w.Symbols) && w.Symbols[i] == best[0] && w.Symbols[i+1] == best[1] {
					symbols = append(symbols, joined)
					i++
				} else {
					symbols = append(symbols, w.Symbols[i])
				}
			}
			words[k].Symbols = symbols
		}
	}
	return merges
}

func TestLearn(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	merged := 0
	for range 100 {
		s := trainer.Settings{Texts: [][]byte{{'a'}, {'b'}, {'c'}}, Size: 5 + rng.IntN(20), MinCount: 1 + rng.Int64N(4), MaxLength: 2 + rng.IntN(8)}
		var words, same []trainer.Word
		for range 1 + rng.IntN(30) {
			symbols := make([]int32, 1+rng.IntN(12))
			for i := range symbols {
				symbols[i] = rng.Int32N(3)
			}
			w := trainer.Word{Symbols: symbols, Count: 1 + rng.Int64N(5)}
			words = append(words, w)
			same = append(same, trainer.Word{Symbols: slices.Clone(symbols), Count: w.Count})
		}
		got, err := trainer.Learn(t.Context(), words, s)
		require.NoError(t, err)
		want := naive(same, s)
		require.Equal(t, want, got.Merges)
		merged += len(want)
	}
	assert.Greater(t, merged, 500)
}
