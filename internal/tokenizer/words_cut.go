package tokenizer

import (
	"bytes"
	"unicode/utf8"
)

// wordModel encodes single words.
type wordModel interface {
	// Encode appends the ids of a word, which is valid UTF-8, to dst. It is safe for concurrent
	// use.
	Encode(dst []int32, word []byte) []int32
}

// Cutter cuts texts of tokenizers that do not cut them themselves, without changing their ids. A
// token that covers the place between two characters contains both, one after the other; so where
// no token does, text can be cut. A Cutter looks at pairs of ASCII characters, and at the character
// that begins words, such as the ▁ of SentencePiece.
type Cutter struct {
	marker []byte
	before map[rune]bool // characters that a token has before the marker
	joined [utf8.RuneSelf][utf8.RuneSelf]bool
}

// NewCutter returns the cutter for a vocabulary and the character that begins its words, which is
// not one of ASCII.
func NewCutter(tokens [][]byte, marker rune) *Cutter {
	c := &Cutter{marker: utf8.AppendRune(nil, marker), before: map[rune]bool{}}
	for _, token := range tokens {
		var last rune
		for i, r := range string(token) {
			switch {
			case i == 0:
			case r == marker:
				c.before[last] = true
			case r < utf8.RuneSelf && last < utf8.RuneSelf:
				c.joined[last][r] = true
			}
			last = r
		}
	}
	return c
}

// Next returns the length of the first part of a text that is not empty and valid UTF-8.
func (c *Cutter) Next(text []byte) int {
	last, i := utf8.DecodeRune(text)
	for i < len(text) {
		b := text[i]
		if b < utf8.RuneSelf {
			if last < utf8.RuneSelf && !c.joined[last][b] {
				return i
			}
			last = rune(b)
			i++
			continue
		}
		if b == c.marker[0] && !c.before[last] && bytes.HasPrefix(text[i:], c.marker) {
			return i
		}
		var size int
		last, size = utf8.DecodeRune(text[i:])
		i += size
	}
	return i
}
