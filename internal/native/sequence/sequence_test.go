package sequence_test

import (
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/native/sequence"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is a sequence that some ranks have, with documents and a window.
type sample struct {
	ranks, length, before int
	segments, positions   []int32
}

func draw(rng *rand.Rand) sample {
	s := sample{ranks: 2 + rng.IntN(4), before: -1}
	s.length = 2 * s.ranks * (1 + rng.IntN(5))
	if rng.IntN(2) == 0 {
		s.before = rng.IntN(s.length)
	}
	if rng.IntN(3) == 0 {
		return s
	}
	s.segments, s.positions = make([]int32, s.length), make([]int32, s.length)
	for i := 1; i < s.length; i++ {
		s.segments[i], s.positions[i] = s.segments[i-1], s.positions[i-1]+1
		if rng.IntN(4) == 0 {
			s.segments[i], s.positions[i] = s.segments[i]+1, 0
		}
	}
	return s
}

// sees reports whether attention of the whole sequence brings a query and a key together.
func (s sample) sees(query, key int) bool {
	return key <= query && (s.before < 0 || key >= query-s.before) && (s.segments == nil || s.segments[query] == s.segments[key])
}

// places lists the places of the tokens of a share.
func places(s sequence.Share) []int {
	all := make([]int, s.Length)
	for i := range all {
		all[i] = i
	}
	return sequence.Pick(s, all)
}

// The shares of all ranks are the tokens of the sequence, each once, with as many pairs of a query
// and a key that it sees on each rank.
func TestShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		x := draw(rng)
		seen := make([]int, x.length)
		pairs := 0
		for rank := range x.ranks {
			s := sequence.Share{Rank: rank, Ranks: x.ranks, Length: x.length}
			own := places(s)
			require.Len(t, own, s.Tokens())
			sum := 0
			for _, at := range own {
				seen[at]++
				sum += at + 1
			}
			if rank == 0 {
				pairs = sum
			}
			assert.Equal(t, pairs, sum)
			at := 0
			for _, run := range s.Runs(x.positions) {
				assert.Equal(t, at, run.At)
				for i := range run.N {
					want := own[at]
					if x.positions != nil {
						want = int(x.positions[want])
					}
					assert.Equal(t, want, run.First+i)
					at++
				}
			}
			assert.Equal(t, len(own), at)
		}
		for _, n := range seen {
			assert.Equal(t, 1, n)
		}
	}
}

// The parts of all ranks bring together what attention of the whole sequence does, each pair once.
func TestParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		x := draw(rng)
		for rank := range x.ranks {
			s := sequence.Share{Rank: rank, Ranks: x.ranks, Length: x.length}
			got := map[[2]int]int{}
			for _, p := range s.Parts(x.segments, x.before) {
				for d := range len(p.QueryEnds) - 1 {
					q, qEnd, kEnd := int(p.QueryEnds[d]), int(p.QueryEnds[d+1]), int(p.KeyEnds[d+1])
					for ; q < qEnd; q++ {
						diagonal := kEnd - (qEnd - q) // the last query sees the last key
						for k := int(p.KeyEnds[d]); k <= diagonal; k++ {
							if x.before < 0 || k >= diagonal-x.before {
								got[[2]int{p.Queries.Lo + q, p.Keys.Lo + k}]++
							}
						}
					}
					assert.Equal(t, p.Keys.Len(), int(p.KeyEnds[len(p.KeyEnds)-1]))
				}
			}
			for i, query := range places(s) {
				for key := range x.length {
					want := 0
					if x.sees(query, key) {
						want = 1
					}
					require.Equal(t, want, got[[2]int{i, key}], "%+v: rank %d, query %d, key %d", x, rank, query, key)
				}
			}
		}
	}
}

// The blocks of a rank and of all others bring together what attention of the whole sequence does,
// each pair once. Without documents and windows there is one for each of the others.
func TestBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		x := draw(rng)
		share := func(rank int) sequence.Share {
			return sequence.Share{Rank: rank, Ranks: x.ranks, Length: x.length}
		}
		for rank := range x.ranks {
			queries, got := places(share(rank)), map[[2]int]int{}
			for of := range x.ranks {
				keys, blocks := places(share(of)), share(rank).Blocks(of, x.segments, x.before)
				assert.LessOrEqual(t, len(blocks), 2, "%+v", x)
				if x.segments == nil && x.before < 0 {
					assert.Len(t, blocks, 1)
				}
				for i, b := range blocks {
					assert.Equal(t, of == rank && i == 0, b.Ends != nil)
					ends := b.Ends
					if ends == nil {
						ends = []int32{0, int32(b.Queries.Len())}
					}
					for d := range len(ends) - 1 {
						for q := int(ends[d]); q < int(ends[d+1]); q++ {
							first, own, end := 0, q+b.Keys.Len()-b.Queries.Len(), b.Keys.Len()
							if b.Ends != nil {
								first, own, end = int(ends[d]), q, q+1
							}
							seen := 0
							for k := first; k < end; k++ {
								if b.Before < 0 || k >= own-b.Before {
									got[[2]int{queries[b.Queries.Lo+q], keys[b.Keys.Lo+k]}]++
									seen++
								}
							}
							assert.Positive(t, seen, "%+v: a query without keys in %+v", x, b)
						}
					}
				}
			}
			for _, query := range queries {
				for key := range x.length {
					want := 0
					if x.sees(query, key) {
						want = 1
					}
					require.Equal(t, want, got[[2]int{query, key}], "%+v: rank %d, query %d, key %d", x, rank, query, key)
				}
			}
		}
	}
}

func TestValidate(t *testing.T) {
	assert.NoError(t, sequence.Validate(7, 1))
	assert.NoError(t, sequence.Validate(12, 3))
	assert.EqualError(t, sequence.Validate(10, 2), "context_parallel_size: given 2, want 1, or a seq_length in place of 10 that is a multiple of 4: each rank has two chunks of one length")
}
