package tokenizer

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Sizes of the cache. A text has few different words that are frequent; 64 Ki of them are 2 MiB.
const (
	cacheBits = 16
	maxCached = 128     // the longest word that is kept, in bytes
	maxWords  = 1 << 20 // bytes of words that are kept
	maxIDs    = 1 << 19 // ids of words that are kept
)

// Cache keeps the ids of words for one encoder and one goroutine.
type Cache struct {
	entries []entry
	words   []byte
	ids     []int32
}

// entry is a word of the cache, as ranges of Cache.words and Cache.ids.
type entry struct {
	hash    uint64
	word    uint32
	ids     uint32
	wordLen uint16 // 0 in an empty entry
	idsLen  uint16
}

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{entries: make([]entry, 1<<cacheBits)} }

// Encode appends the ids of a word to dst.
func (c *Cache) Encode(m wordModel, dst []int32, word []byte) []int32 {
	if len(word) == 0 {
		return dst
	}
	if len(word) > maxCached {
		return m.Encode(dst, word)
	}
	h := hash(word)
	e := &c.entries[h>>(64-cacheBits)]
	if e.hash == h && int(e.wordLen) == len(word) && bytes.Equal(c.words[e.word:e.word+uint32(e.wordLen)], word) {
		return append(dst, c.ids[e.ids:e.ids+uint32(e.idsLen)]...)
	}
	begin := len(dst)
	dst = m.Encode(dst, word)
	c.keep(e, h, word, dst[begin:])
	return dst
}

// keep enters a word in place of an older one. A full cache begins anew.
func (c *Cache) keep(e *entry, h uint64, word []byte, ids []int32) {
	if len(c.words)+len(word) > maxWords || len(c.ids)+len(ids) > maxIDs {
		clear(c.entries)
		c.words, c.ids = c.words[:0], c.ids[:0]
	}
	*e = entry{
		hash: h, word: uint32(len(c.words)), wordLen: uint16(len(word)), ids: uint32(len(c.ids)), idsLen: uint16(len(ids)),
	}
	c.words = append(c.words, word...)
	c.ids = append(c.ids, ids...)
}

// hash mixes the bytes of a word, eight at a time; two reads that overlap serve the last ones.
func hash(word []byte) uint64 {
	const a, b = 0x9e3779b97f4a7c15, 0xe7037ed1a0b428db
	h := uint64(len(word)) * a
	switch n := len(word); {
	case n >= 8:
		for i := 0; i+8 < n; i += 8 {
			h = mix(h^binary.LittleEndian.Uint64(word[i:]), b)
		}
		h = mix(h^binary.LittleEndian.Uint64(word[n-8:]), a)
	case n >= 4:
		h = mix(h^uint64(binary.LittleEndian.Uint32(word))^uint64(binary.LittleEndian.Uint32(word[n-4:]))<<32, a)
	default:
		h = mix(h^uint64(word[0])^uint64(word[n/2])<<8^uint64(word[n-1])<<16, a)
	}
	return h * b
}

func mix(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}
