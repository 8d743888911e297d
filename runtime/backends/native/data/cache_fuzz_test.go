package data

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCacheReader feeds any bytes to the cache reader, with the header checksum
// repaired in half of the cases so that the fields behind it are reached. What
// it accepts must be what it would write.
func FuzzCacheReader(f *testing.F) {
	c := newCache("dir", key{1, 2, 3}, 2)
	for _, n := range []int{0, 2, 64} {
		t := newTokens(make([]byte, n), 2)
		f.Add(append(c.header(t), t.bytes...), false)
		f.Add(append(c.header(t), t.bytes...)[:cacheHeader+n/2], true)
	}
	f.Add([]byte(cacheMagic), true)
	f.Fuzz(func(t *testing.T, b []byte, repair bool) {
		if repair && len(b) >= cacheHeader {
			b = bytes.Clone(b)
			sum := crc32.Checksum(b[:60], castagnoli())
			b[60], b[61], b[62], b[63] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		tokens, err := c.decode(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		require.Equal(t, b, append(c.header(tokens), tokens.bytes...))
		ids := make([]int32, tokens.Len())
		tokens.Read(ids, 0)
	})
}
