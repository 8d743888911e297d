package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// charsMap is the table of SentencePiece: a trie of the texts that are replaced, as a double array
// (Aoe 1989), and the texts that replace them, each ended by a zero byte.
type charsMap struct {
	units []uint32
	texts []byte
}

// Precompiled returns the normalizer that a precompiled table of SentencePiece describes: the
// number of bytes of the double array in 32 bits, the array, and the texts. An empty table changes
// nothing.
func Precompiled(table []byte) (Normalizer, error) {
	if len(table) == 0 {
		return func(dst, text []byte) []byte { return append(dst, text...) }, nil
	}
	m, err := newCharsMap(table)
	if err != nil {
		return nil, err
	}
	return m.normalize, nil
}

// newCharsMap reads a table that is not empty.
func newCharsMap(table []byte) (*charsMap, error) {
	if len(table) < 4 {
		return nil, errors.New("the precompiled table of characters is shorter than its header")
	}
	size := binary.LittleEndian.Uint32(table)
	if uint64(size) > uint64(len(table)-4) || size%4 != 0 || size == 0 {
		return nil, fmt.Errorf("the precompiled table of characters has %d bytes, but its array is said to have %d", len(table), size)
	}
	m := &charsMap{units: make([]uint32, size/4), texts: table[4+size:]}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(table[4+4*i:])
	}
	if len(m.texts) > 0 && m.texts[len(m.texts)-1] != 0 || !utf8.Valid(m.texts) {
		return nil, errors.New("the texts of the precompiled table of characters are not UTF-8 with a zero after each")
	}
	return m, nil
}

// normalize appends text with the longest known beginnings replaced, one after the other.
func (m *charsMap) normalize(dst, text []byte) []byte {
	for len(text) > 0 {
		with, n := m.longest(text)
		if n == 0 {
			_, n = utf8.DecodeRune(text)
			with = text[:n]
		}
		dst = append(dst, with...)
		text = text[n:]
	}
	return dst
}

// longest returns what replaces the longest beginning of text that is known, and its length.
func (m *charsMap) longest(text []byte) (with []byte, n int) {
	node := offset(m.units[0])
	for i, b := range text {
		if b == 0 {
			break
		}
		node ^= uint32(b)
		if node >= uint32(len(m.units)) {
			break
		}
		unit := m.units[node]
		if unit&(1<<31|0xff) != uint32(b) {
			break
		}
		node ^= offset(unit)
		if unit>>8&1 == 0 { // no text ends here
			continue
		}
		if node >= uint32(len(m.units)) {
			break
		}
		if at := m.units[node] &^ (1 << 31); at < uint32(len(m.texts)) {
			with, n = m.textAt(at), i+1
		}
	}
	return with, n
}

// textAt returns the text that begins at a place.
func (m *charsMap) textAt(at uint32) []byte {
	end := at
	for m.texts[end] != 0 {
		end++
	}
	return m.texts[at:end]
}

// offset returns by how much the children of a unit are away.
func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
