package tokenizer

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Normalizer appends the normal form of text to dst.
type Normalizer func(dst, text []byte) []byte

// Form returns the normalizer for a form of Unicode by its name, such as NFC.
func Form(name string) (Normalizer, bool) {
	form, ok := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}[name]
	return func(dst, text []byte) []byte { return form.Append(dst, text...) }, ok
}

// Prepend returns a normalizer that puts a prefix before texts that are not empty.
func Prepend(prefix string) Normalizer {
	return func(dst, text []byte) []byte {
		if len(text) > 0 {
			dst = append(dst, prefix...)
		}
		return append(dst, text...)
	}
}

// Replace returns a normalizer that puts with in the place of every occurrence of what, which is
// not empty.
func Replace(what, with string) Normalizer {
	find := []byte(what)
	return func(dst, text []byte) []byte {
		for {
			i := bytes.Index(text, find)
			if i < 0 {
				return append(dst, text...)
			}
			dst = append(dst, text[:i]...)
			dst = append(dst, with...)
			text = text[i+len(find):]
		}
	}
}

// Strip returns a normalizer that removes white space from the ends.
func Strip(left, right bool) Normalizer {
	return func(dst, text []byte) []byte {
		if left {
			text = bytes.TrimLeftFunc(text, unicode.IsSpace)
		}
		if right {
			text = bytes.TrimRightFunc(text, unicode.IsSpace)
		}
		return append(dst, text...)
	}
}

// Lower is a normalizer that makes letters lower case.
func Lower(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if r == 'İ' { // the only letter that becomes two characters
			dst = append(dst, "i\u0307"...)
			continue
		}
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
	}
	return dst
}

// StripMarks is a normalizer that removes combining marks.
func StripMarks(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if !unicode.Is(unicode.M, r) {
			dst = append(dst, text[:size]...)
		}
		text = text[size:]
	}
	return dst
}

// Sequence returns the normalizer that applies others one after the other.
func Sequence(steps []Normalizer) Normalizer {
	return func(dst, text []byte) []byte {
		for i, step := range steps {
			if i == len(steps)-1 {
				return step(dst, text)
			}
			text = step(make([]byte, 0, len(text)+len(text)/4+16), text)
		}
		return append(dst, text...)
	}
}

// Valid returns text, or a copy with U+FFFD in the place of bytes that are no UTF-8: one for each
// longest beginning of a character, as the Encoding Standard of the WHATWG says.
func Valid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	valid := make([]byte, 0, len(text)+len(text)/8)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			valid = utf8.AppendRune(valid, utf8.RuneError)
			text = text[incomplete(text):]
			continue
		}
		valid = append(valid, text[:size]...)
		text = text[size:]
	}
	return valid
}

// incomplete returns how many of the first bytes of text, which begin no whole character, one
// U+FFFD stands for.
func incomplete(text []byte) int {
	var length int
	low, high := byte(0x80), byte(0xbf) // of the second byte
	switch b := text[0]; {
	case b >= 0xc2 && b <= 0xdf:
		length = 2
	case b >= 0xe0 && b <= 0xef:
		length = 3
		if b == 0xe0 {
			low = 0xa0
		} else if b == 0xed {
			high = 0x9f
		}
	case b >= 0xf0 && b <= 0xf4:
		length = 4
		if b == 0xf0 {
			low = 0x90
		} else if b == 0xf4 {
			high = 0x8f
		}
	default:
		return 1
	}
	n := 1
	for n < length && n < len(text) && text[n] >= low && text[n] <= high {
		low, high = 0x80, 0xbf
		n++
	}
	return n
}
