package indexed_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/native/data/indexed"
)

func TestStoredRoundTrip(t *testing.T) {
	t.Parallel()
	for width, most := range map[int]int32{1: math.MaxUint8, 2: math.MaxUint16, 4: math.MaxInt32} {
		want := []int32{0, 1, most, 7}
		b := indexed.Append([]byte{9}, want, width)
		assert.Len(t, b, 1+4*width)
		got := make([]int32, 4)
		indexed.Load(got, b[1:], width)
		assert.Equal(t, want, got, width)
	}
	assert.Equal(t, []byte{0x34, 0x12}, indexed.Append(nil, []int32{0x1234}, 2), "little-endian")
}
