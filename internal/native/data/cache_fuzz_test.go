package data

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzCacheReader feeds any bytes to the cache reader, with the footer checksum repaired in half of
// the cases so that the fields behind it are reached. What it accepts must be what it would write.
//
// Oracle: round trip.
func FuzzCacheReader(f *testing.F) {
	c := newCache("dir", key{1, 2, 3}, 2)
	for _, n := range []int{0, 2, 64} {
		tokens := make([]byte, n)
		file := append(tokens, c.footer(uint64(n/2), corpus.Bad{Records: n, Empty: 1}, crc32.Checksum(tokens, castagnoli()))...)
		f.Add(file, false)
		f.Add(file[n/2:], true)
	}
	f.Add([]byte(cacheMagic), true)
	f.Fuzz(func(t *testing.T, b []byte, repair bool) {
		if repair && len(b) >= cacheFooter {
			b = bytes.Clone(b)
			footer := b[len(b)-cacheFooter:]
			binary.LittleEndian.PutUint32(footer[76:], crc32.Checksum(footer[:76], castagnoli()))
		}
		var tokens *Tokens
		var err error
		primustest.Cost(t, len(b), 100, func() { tokens, err = c.decode(t.Context(), b) })
		if err != nil {
			return
		}
		require.Equal(t, b, append(bytes.Clone(tokens.bytes), c.footer(uint64(tokens.Len()), tokens.bad, tokens.crc)...))
		ids := make([]int32, tokens.Len())
		require.NoError(t, tokens.Read(ids, 0))
	})
}
