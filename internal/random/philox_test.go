package random_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/random"
)

// The known answers are those that Random123 publishes for ten rounds.
func TestPhilox4x32(t *testing.T) {
	t.Parallel()
	const all = math.MaxUint32
	assert.Equal(t, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, random.Philox4x32([4]uint32{}, [2]uint32{}))
	assert.Equal(t, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}, random.Philox4x32([4]uint32{all, all, all, all}, [2]uint32{all, all}))
	assert.Equal(t, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		random.Philox4x32([4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}))
}

func TestRandomBits(t *testing.T) {
	t.Parallel()
	words := random.Philox4x32([4]uint32{2, 1}, [2]uint32{0x9abcdef0, 0x12345678})
	for i, w := range words {
		assert.Equal(t, w, random.Bits(0x123456789abcdef0, 1<<32, 8+uint64(i)))
		assert.Equal(t, w, random.Bits(0x123456789abcdef0, 1<<32+2, uint64(i)), "the offset counts blocks")
	}
	assert.Equal(t, random.Bits(7, 0, 3), random.Bits(7, math.MaxUint64, 7), "the counter wraps around")
}
