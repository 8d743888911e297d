package tokenizer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/tokenizer"
)

func TestByte(t *testing.T) {
	t.Parallel()
	var tok tokenizer.Byte
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	ids := tok.Encode([]int32{-7}, every)
	assert.Equal(t, int32(-7), ids[0], "Encode appends")
	assert.Equal(t, []int32{0, 1, 2}, ids[1:4])
	assert.Equal(t, every, tok.Decode(nil, ids[1:]))
	assert.Equal(t, "xa\uFFFDb\uFFFD", string(tok.Decode([]byte("x"), []int32{'a', 256, 'b', -1})))
}
