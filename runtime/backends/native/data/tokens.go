package data

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"unsafe"
)

// Tokens is an immutable stream of token ids, one or two bytes each, in memory or
// mapped from a file.
type Tokens struct {
	bytes []byte // little-endian
	width int    // bytes of an id, 1 or 2
	crc   uint32

	release func() error // ends the mapping; nil for a stream in memory
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
// is not inside the stream. A file that can no longer be read, because its disk
// failed or somebody made it shorter, is an error.
func (t *Tokens) Read(dst []int32, from int) (err error) {
	if t.release != nil {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer catchFault(&err)
	}
	if t.width == 1 {
		for i, b := range t.bytes[from : from+len(dst)] {
			dst[i] = int32(b)
		}
		return nil
	}
	src := t.bytes[2*from : 2*(from+len(dst))]
	for i := range dst {
		dst[i] = int32(binary.LittleEndian.Uint16(src[2*i:]))
	}
	return nil
}

// catchFault turns a fault in mapped memory into an error. Other panics continue. It is deferred
// while SetPanicOnFault is on.
func catchFault(err *error) {
	fault := recover()
	if fault == nil {
		return
	}
	if _, ofMemory := fault.(interface{ Addr() uintptr }); !ofMemory {
		panic(fault)
	}
	*err = fmt.Errorf("data: the token cache can no longer be read: %v", fault)
}

// Close releases the file that the tokens are mapped from. They must not be read any more.
func (t *Tokens) Close() error {
	if t.release == nil {
		return nil
	}
	t.bytes = nil
	return t.release()
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
