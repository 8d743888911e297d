package data

import (
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"unsafe"

	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/native/data/indexed"
)

// Tokens is an immutable stream of token ids, one, two or four bytes each, in memory or mapped from
// a file.
type Tokens struct {
	bytes []byte // little-endian
	width int    // bytes of an id: 1, 2 or 4
	crc   uint32
	bad   corpus.Bad // what was left out when a cache was written
	what  string     // the file, for errors

	release func() error // ends the mapping; nil for a stream in memory
}

// widthOf returns the bytes that an id of a vocabulary takes.
func widthOf(vocabSize int) (int, error) {
	switch {
	case vocabSize < 1 || vocabSize > math.MaxInt32:
		return 0, fmt.Errorf("data: given a tokenizer with %d ids, want 1 to %d", vocabSize, math.MaxInt32)
	case vocabSize <= 1<<8:
		return 1, nil
	case vocabSize <= 1<<16:
		return 2, nil
	default:
		return 4, nil
	}
}

func newTokens(data []byte, width int) *Tokens {
	return &Tokens{bytes: data, width: width, crc: crc32.Checksum(data, castagnoli())}
}

// identity identifies the stream.
func (t *Tokens) identity() string { return fmt.Sprintf("tokens=%d crc32c=%08x", t.Len(), t.crc) }

// Len returns the number of tokens.
func (t *Tokens) Len() int { return len(t.bytes) / t.width }

// Read fills dst with the tokens from position from on. It panics when the range
// is not inside the stream. A file that can no longer be read, because its disk
// failed or somebody made it shorter, is an error.
func (t *Tokens) Read(dst []int32, from int) (err error) {
	if t.release == nil {
		t.read(dst, from)
		return nil
	}
	return indexed.Guard(t.what, func() error {
		t.read(dst, from)
		return nil
	})
}

func (t *Tokens) read(dst []int32, from int) {
	indexed.Load(dst, t.bytes[t.width*from:t.width*(from+len(dst))], t.width)
}

// scan computes the checksum of mapped tokens and returns an error for the first id outside a
// vocabulary.
func (t *Tokens) scan(ctx context.Context, vocabSize int) error {
	ids := make([]int32, 64<<10)
	return indexed.Guard(t.what, func() error {
		for from := 0; from < t.Len(); from += len(ids) {
			if err := ctx.Err(); err != nil {
				return err
			}
			ids = ids[:min(len(ids), t.Len()-from)]
			t.read(ids, from)
			for i, id := range ids {
				if id < 0 || int(id) >= vocabSize {
					return fmt.Errorf("%s: byte %d: given the token %d, want 0 to %d: the dataset was made with another tokenizer, or it is damaged", t.what, (from+i)*t.width, id, vocabSize-1)
				}
			}
			t.crc = crc32.Update(t.crc, castagnoli(), t.bytes[from*t.width:(from+len(ids))*t.width])
		}
		return nil
	})
}

// Close releases the file that the tokens are mapped from. They must not be read any more.
func (t *Tokens) Close() error {
	if t.release == nil {
		return nil
	}
	t.bytes = nil
	return t.release()
}

// checkIDs returns an error for an id outside the vocabulary, which is a fault of the tokenizer.
func checkIDs(ids []int32, vocabSize int) error {
	for _, id := range ids {
		if id < 0 || int(id) >= vocabSize {
			return fmt.Errorf("data: the tokenizer produced the id %d, want 0 to %d", id, vocabSize-1)
		}
	}
	return nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// int32Bytes returns the memory of ids.
func int32Bytes(ids []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(ids))), 4*len(ids))
}
