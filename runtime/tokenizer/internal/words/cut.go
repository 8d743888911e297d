package words

import (
	"bytes"
	"unicode/utf8"
)

// Model encodes single words.
type Model interface {
	// Encode appends the ids of a word, which is valid UTF-8, to dst. It is safe for concurrent use.
	Encode(dst []int32, word []byte) []int32
}

// Cutter cuts texts of tokenizers that do not cut them themselves, without changing their ids. A
// token that covers the place between two characters contains both; so where no token contains
// both, text can be cut. Most vocabularies have a character that begins words, such as the ▁ of
// SentencePiece, which few tokens have after another character.
type Cutter struct {
	marker []byte
	joined map[rune]bool // characters that a token has before the marker
}

// NewCutter returns the cutter for a vocabulary and the character that begins its words.
func NewCutter(tokens [][]byte, marker rune) *Cutter {
	c := &Cutter{marker: utf8.AppendRune(nil, marker), joined: map[rune]bool{}}
	for _, token := range tokens {
		for begin := 1; begin < len(token); {
			i := bytes.Index(token[begin:], c.marker)
			if i < 0 {
				break
			}
			before, _ := utf8.DecodeLastRune(token[:begin+i])
			c.joined[before] = true
			begin += i + 1
		}
	}
	return c
}

// Next returns the length of the first part of a text that is not empty.
func (c *Cutter) Next(text []byte) int {
	_, begin := utf8.DecodeRune(text)
	for {
		i := bytes.Index(text[begin:], c.marker)
		if i < 0 {
			return len(text)
		}
		begin += i
		before, _ := utf8.DecodeLastRune(text[:begin])
		if !c.joined[before] {
			return begin
		}
		begin += len(c.marker)
	}
}
