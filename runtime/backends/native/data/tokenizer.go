package data

import "unicode/utf8"

// Tokenizer turns text into token ids and back. An implementation is immutable.
type Tokenizer interface {
	// Name identifies the mapping; two tokenizers with one name encode alike.
	Name() string

	// VocabSize returns the number of ids: all ids are below it.
	VocabSize() int

	// Encode appends the ids of text to dst. Long files are encoded in parts of 256 KiB.
	Encode(dst []int32, text []byte) []int32

	// Decode appends the text of ids to dst.
	Decode(dst []byte, ids []int32) []byte
}

// ByteTokenizer maps every byte to the id of its value: 256 ids, no special ones.
// The zero value is ready to use.
type ByteTokenizer struct{}

var _ Tokenizer = ByteTokenizer{}

// Name returns "byte".
func (ByteTokenizer) Name() string { return "byte" }

// VocabSize returns 256. A model may have more ids; they never occur in data.
func (ByteTokenizer) VocabSize() int { return 256 }

// Encode appends one id per byte to dst.
func (ByteTokenizer) Encode(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, int32(b))
	}
	return dst
}

// Decode appends one byte per id to dst. An id that no byte has, which a model with a larger
// vocabulary can produce, becomes the replacement character U+FFFD.
func (ByteTokenizer) Decode(dst []byte, ids []int32) []byte {
	for _, id := range ids {
		if id < 0 || id > 255 {
			dst = utf8.AppendRune(dst, utf8.RuneError)
			continue
		}
		dst = append(dst, byte(id))
	}
	return dst
}
