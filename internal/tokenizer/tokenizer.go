package tokenizer

// Tokenizer turns text into token ids and back. An implementation is immutable.
type Tokenizer interface {
	// Name identifies the mapping; two tokenizers with one name encode alike.
	Name() string

	// VocabSize returns the number of ids: all ids are below it.
	VocabSize() int

	// Encode appends the ids of text to dst.
	Encode(dst []int32, text []byte) []int32

	// Decode appends the text of ids to dst.
	Decode(dst []byte, ids []int32) []byte
}
