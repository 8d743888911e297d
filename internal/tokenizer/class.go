package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// The classes of a character, of which it may have several.
const (
	letter  = 1 << iota // \p{L}
	number              // \p{N}
	space               // \s, that is White_Space
	newline             // carriage return and line feed
	upper               // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lower               // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	digit               // \p{Nd}
	punct               // \p{P} and the symbols of ASCII
)

// word are the classes that [^\s\p{L}\p{N}] leaves out.
const word = letter | number | space

// classTable gives the classes of every character: blocks of 256 characters, equal ones once.
type classTable struct {
	block  [(unicode.MaxRune + 1) >> 8]uint16
	blocks [][256]uint8
}

// classes is built at its first use, since most programs never split text.
var classes = sync.OnceValue(func() *classTable {
	t := new(classTable)
	flat := make([]uint8, unicode.MaxRune+1)
	mark := func(class uint8, tables ...*unicode.RangeTable) {
		for _, table := range tables {
			for _, r := range table.R16 {
				for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
					flat[c] |= class
				}
			}
			for _, r := range table.R32 {
				for c := r.Lo; c <= r.Hi; c += r.Stride {
					flat[c] |= class
				}
			}
		}
	}
	mark(letter, unicode.L)
	mark(number, unicode.N)
	mark(space, unicode.White_Space)
	mark(upper, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M)
	mark(lower, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M)
	mark(digit, unicode.Nd)
	mark(punct, unicode.P)
	for _, c := range "$+<=>^`|~" {
		flat[c] |= punct
	}
	flat['\n'] |= newline
	flat['\r'] |= newline
	known := map[[256]uint8]uint16{}
	for i := range t.block {
		b := [256]uint8(flat[i<<8:])
		at, ok := known[b]
		if !ok {
			at = uint16(len(t.blocks))
			known[b] = at
			t.blocks = append(t.blocks, b)
		}
		t.block[i] = at
	}
	return t
})

// at returns the classes of the character at text[i] and its length, or 0 and 0 at the end. The
// text is valid UTF-8.
func (t *classTable) at(text []byte, i int) (class uint8, size int) {
	if i >= len(text) {
		return 0, 0
	}
	if c := text[i]; c < utf8.RuneSelf {
		return t.blocks[0][c], 1
	}
	r, size := utf8.DecodeRune(text[i:])
	return t.blocks[t.block[r>>8]][r&255], size
}

// run returns the end of the characters from i on that have one of the classes.
func (t *classTable) run(text []byte, i int, class uint8) int {
	ascii := &t.blocks[0]
	for i < len(text) {
		if c := text[i]; c < utf8.RuneSelf {
			if ascii[c]&class == 0 {
				return i
			}
			i++
			continue
		}
		c, size := t.at(text, i)
		if c&class == 0 {
			return i
		}
		i += size
	}
	return i
}

// runWithout returns the end of the characters from i on that have none of the classes.
func (t *classTable) runWithout(text []byte, i int, class uint8) int {
	for {
		c, size := t.at(text, i)
		if size == 0 || c&class != 0 {
			return i
		}
		i += size
	}
}
