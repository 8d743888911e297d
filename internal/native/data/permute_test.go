package data

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPermutationIsABijection(t *testing.T) {
	t.Parallel()
	for n := uint64(1); n <= 300; n++ {
		for epoch := range uint64(3) {
			p := newPermutation(n, 9, epoch)
			seen := make([]bool, n)
			for i := range n {
				j := p.at(i)
				require.Less(t, j, n)
				require.False(t, seen[j], "n %d, value %d twice", n, j)
				seen[j] = true
			}
		}
	}
	big := newPermutation(1<<40+7, 1, 0)
	assert.Less(t, big.at(1<<40), uint64(1<<40+7))
}

// TestPermutationMixes compares how often input range a lands in output range b
// with a uniform shuffle: Pearson's statistic over 16 × 16 cells, for 200 keys,
// has mean 225 and standard deviation √(2·225) ≈ 21 a key.
func TestPermutationMixes(t *testing.T) {
	t.Parallel()
	const n, cells, keys = 1000 * 16, 16, 200
	sum := 0.0
	for key := range uint64(keys) {
		p := newPermutation(n, key, key%3)
		var count [cells][cells]float64
		for i := range uint64(n) {
			count[i*cells/n][p.at(i)*cells/n]++
		}
		want := float64(n) / cells / cells
		for _, row := range count {
			for _, c := range row {
				sum += (c - want) * (c - want) / want
			}
		}
	}
	assert.InDelta(t, 225, sum/keys, 10)
}

func TestPermutationNeighboursPart(t *testing.T) {
	t.Parallel()
	const n = 4096
	p := newPermutation(n, 5, 0)
	together := 0
	for i := range uint64(n - 1) {
		if p.at(i)+1 == p.at(i+1) {
			together++
		}
	}
	assert.Less(t, together, 8, "a uniform shuffle leaves one pair on average")
}

func TestPermutationsOfSeedsAndEpochsDiffer(t *testing.T) {
	t.Parallel()
	const n = 1000
	seen := map[[4]uint64]bool{}
	for seed := range uint64(20) {
		for epoch := range uint64(20) {
			p := newPermutation(n, seed, epoch)
			seen[[4]uint64{p.at(0), p.at(1), p.at(2), p.at(3)}] = true
		}
	}
	assert.Len(t, seen, 400)
}
