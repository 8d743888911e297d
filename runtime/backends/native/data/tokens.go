package data

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"unsafe"
)

// Tokens is an immutable stream of token ids in memory, one or two bytes each.
type Tokens struct {
	bytes []byte // little-endian
	width int    // bytes of an id, 1 or 2
	crc   uint32
}

// widthOf returns the bytes that an id of a vocabulary takes.
func widthOf(vocabSize int) (int, error) {
	switch {
	case vocabSize < 1 || vocabSize > 1<<16:
		return 0, fmt.Errorf("data: got a tokenizer with %d ids, want 1 to %d", vocabSize, 1<<16)
	case vocabSize <= 1<<8:
		return 1, nil
	default:
		return 2, nil
	}
}

func newTokens(data []byte, width int) *Tokens {
	return &Tokens{bytes: data, width: width, crc: crc32.Checksum(data, castagnoli())}
}

// Len returns the number of tokens.
func (t *Tokens) Len() int { return len(t.bytes) / t.width }

// Read fills dst with the tokens from position from on. It panics when the range
// is not inside the stream.
func (t *Tokens) Read(dst []int32, from int) {
	if t.width == 1 {
		for i, b := range t.bytes[from : from+len(dst)] {
			dst[i] = int32(b)
		}
		return
	}
	src := t.bytes[2*from : 2*(from+len(dst))]
	for i := range dst {
		dst[i] = int32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// appendIDs appends ids in the stream's encoding. An id outside the vocabulary
// is a fault of the tokenizer.
func appendIDs(dst []byte, ids []int32, width, vocabSize int) ([]byte, error) {
	for _, id := range ids {
		if id < 0 || int(id) >= vocabSize {
			return dst, fmt.Errorf("data: the tokenizer produced the id %d, want 0 to %d", id, vocabSize-1)
		}
		if width == 1 {
			dst = append(dst, byte(id))
		} else {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(id))
		}
	}
	return dst, nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// int32Bytes returns the memory of ids.
func int32Bytes(ids []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(ids))), 4*len(ids))
}
