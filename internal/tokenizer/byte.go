package tokenizer

import "unicode/utf8"

// Byte maps every byte to the id of its value: 256 ids, no special ones. The zero value is ready to
// use.
type Byte struct{}

var _ Tokenizer = Byte{}

// Name returns "byte".
func (Byte) Name() string { return "byte" }

// VocabSize returns 256. A model may have more ids; they never occur in data.
func (Byte) VocabSize() int { return 256 }

// Encode appends one id per byte to dst.
func (Byte) Encode(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, int32(b))
	}
	return dst
}

// Decode appends one byte per id to dst. An id that no byte has, which a model with a larger
// vocabulary can produce, becomes the replacement character U+FFFD.
func (Byte) Decode(dst []byte, ids []int32) []byte {
	for _, id := range ids {
		if id < 0 || id > 255 {
			dst = utf8.AppendRune(dst, utf8.RuneError)
			continue
		}
		dst = append(dst, byte(id))
	}
	return dst
}
