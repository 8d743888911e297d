package tokenizer

import (
	"bytes"
	"unicode/utf8"
)

// SentencePieceSettings say how SentencePiece normalizes text.
type SentencePieceSettings struct {
	// CharsMap is the precompiled table of characters, or empty.
	CharsMap []byte

	// DummyPrefix puts a space before the text.
	DummyPrefix bool

	// RemoveExtraSpaces removes spaces from the ends and leaves one of several.
	RemoveExtraSpaces bool

	// EscapeSpaces writes spaces as ▁.
	EscapeSpaces bool

	// Keep returns the length of the beginning of a text that is left as it is, or 0.
	Keep func(text []byte) int
}

// sentencePieceNormalizer returns the normalizer of SentencePiece.
func sentencePieceNormalizer(s SentencePieceSettings) (Normalizer, error) {
	var table *charsMap
	if len(s.CharsMap) > 0 {
		var err error
		if table, err = newCharsMap(s.CharsMap); err != nil {
			return nil, err
		}
	}
	space := []byte(" ")
	if s.EscapeSpaces {
		space = []byte("▁")
	}
	// next returns what stands for the beginning of a text, and the length of that.
	next := func(text []byte) (with []byte, n int) {
		if n := s.Keep(text); n > 0 {
			return text[:n], n
		}
		if table != nil {
			if with, n := table.longest(text); n > 0 {
				return with, n
			}
		}
		_, n = utf8.DecodeRune(text)
		return text[:n], n
	}
	return func(dst, text []byte) []byte {
		if s.RemoveExtraSpaces {
			for len(text) > 0 {
				with, n := next(text)
				if len(with) != 1 || with[0] != ' ' {
					break
				}
				text = text[n:]
			}
		}
		if len(text) == 0 {
			return dst
		}
		begin := len(dst)
		if s.DummyPrefix {
			dst = append(dst, space...)
		}
		afterSpace := s.RemoveExtraSpaces
		for len(text) > 0 {
			with, n := next(text)
			text = text[n:]
			if afterSpace {
				with = bytes.TrimLeft(with, " ")
			}
			if len(with) == 0 {
				continue
			}
			for _, b := range with {
				if b == ' ' {
					dst = append(dst, space...)
				} else {
					dst = append(dst, b)
				}
			}
			afterSpace = s.RemoveExtraSpaces && with[len(with)-1] == ' '
		}
		if s.RemoveExtraSpaces {
			for bytes.HasSuffix(dst[begin:], space) {
				dst = dst[:len(dst)-len(space)]
			}
		}
		return dst
	}, nil
}
