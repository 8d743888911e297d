package tokenizer_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// bpeNaive joins pairs by looking at all of them each time.
func bpeNaive(ids []int32, merges []tokenizer.Merge) []int32 {
	for {
		best, at, joined := int32(1<<30), -1, int32(0)
		for i := range len(ids) - 1 {
			for _, m := range merges {
				if m.Left == ids[i] && m.Right == ids[i+1] && m.Rank < best {
					best, at, joined = m.Rank, i, m.Joined
				}
			}
		}
		if at < 0 {
			return ids
		}
		ids[at] = joined
		ids = slices.Delete(ids, at+1, at+2)
	}
}

// TestMerges compares short and long words with the naive way, with merges that overlap, also with
// several of one rank.
func TestMerges(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 60 {
		s := tokenizer.Settings{ByteLevel: true, Unknown: tokenizer.None}
		for i := range s.ByteIDs {
			s.ByteIDs[i] = tokenizer.None
		}
		for i := range 3 {
			s.ByteIDs['a'+i] = int32(i)
			s.Tokens = append(s.Tokens, []byte{byte('a' + i)})
		}
		type pair struct{ left, right int32 }
		seen := map[pair]bool{}
		for len(s.Merges) < 1+rng.IntN(12) {
			p := pair{rng.Int32N(int32(len(s.Tokens))), rng.Int32N(int32(len(s.Tokens)))}
			if seen[p] {
				continue
			}
			seen[p] = true
			rank := int32(len(s.Merges))
			if round%2 == 1 {
				rank = rank / 2 * 2
			}
			s.Merges = append(s.Merges, tokenizer.Merge{Left: p.left, Right: p.right, Joined: int32(len(s.Tokens)), Rank: rank})
			s.Tokens = append(s.Tokens, slices.Concat(s.Tokens[p.left], s.Tokens[p.right]))
		}
		m := tokenizer.New(s)
		for _, size := range []int{0, 1, 2, 3, 5, 10, 40, 48, 49, 60, 200} {
			word := make([]byte, size)
			ids := make([]int32, size)
			for i := range word {
				id := rng.IntN(3)
				word[i], ids[i] = byte('a'+id), int32(id)
			}
			require.Equal(t, append([]int32{-7}, bpeNaive(ids, s.Merges)...), m.Encode([]int32{-7}, word), "%s with %v", word, s.Merges)
		}
	}
}
