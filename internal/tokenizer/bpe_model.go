package tokenizer

import (
	"sync"
	"unicode/utf8"
)

// None stands for an id that does not exist.
const None int32 = -1

// Settings describe a Model.
type Settings struct {
	// Tokens are the texts of the ids: bytes for a model of bytes, UTF-8 for one of characters. An id
	// that text never becomes has nil.
	Tokens [][]byte

	// Merges join two tokens; several may have one rank.
	Merges []Merge

	// ByteLevel says that symbols are bytes; otherwise they are characters.
	ByteLevel bool

	// ByteIDs are the ids of single bytes: for a model of bytes its symbols, for one of characters
	// those that stand for characters without an id. None stands for a byte without an id.
	ByteIDs [256]int32

	// Unknown is the id of symbols without any, or None to leave them out.
	Unknown int32

	// FuseUnknown says that adjacent unknown symbols become one id.
	FuseUnknown bool

	// WholeWords says that a word which is a token becomes this token, whatever the merges say.
	WholeWords bool
}

// Merge joins the tokens Left and Right to Joined.
type Merge struct {
	Left, Right, Joined int32
	Rank                int32
}

// Model encodes words.
type Model struct {
	pairs    pairTable
	runes    map[rune]int32
	whole    map[string]int32
	byteIDs  [256]int32
	settings Settings
	scratch  sync.Pool // of *scratch
}

// New returns the model for the settings. Ids in merges are those of tokens.
func New(s Settings) *Model {
	m := &Model{settings: s, byteIDs: s.ByteIDs}
	m.scratch.New = func() any { return new(scratch) }
	m.pairs.init(len(s.Merges))
	for _, merge := range s.Merges {
		m.pairs.set(merge)
	}
	if s.WholeWords {
		m.whole = make(map[string]int32, len(s.Tokens))
		for id, text := range s.Tokens {
			if text != nil {
				m.whole[string(text)] = int32(id)
			}
		}
	}
	if !s.ByteLevel {
		m.runes = map[rune]int32{}
		for id, text := range s.Tokens {
			if r, size := utf8.DecodeRune(text); size > 0 && size == len(text) {
				m.runes[r] = int32(id)
			}
		}
	}
	return m
}

// Encode appends the ids of a word to dst.
func (m *Model) Encode(dst []int32, word []byte) []int32 {
	if m.whole != nil {
		if id, ok := m.whole[string(word)]; ok {
			return append(dst, id)
		}
	}
	begin := len(dst)
	dst = m.symbols(dst, word)
	return dst[:begin+m.merge(dst[begin:])]
}

// pairTable maps pairs of ids to merges: an open hash table, since a lookup per symbol is what
// encoding consists of.
type pairTable struct {
	slots []slot
	shift uint
}

type slot struct {
	left, right int32 // left is None in an empty slot
	joined      int32
	rank        int32
}

func (t *pairTable) init(n int) {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	t.shift = 64 - bits
	t.slots = make([]slot, 1<<bits)
	for i := range t.slots {
		t.slots[i].left = None
	}
}

func (t *pairTable) hash(left, right int32) int {
	return int((uint64(uint32(left))<<32 | uint64(uint32(right))) * 0x9e3779b97f4a7c15 >> t.shift)
}

// set adds a merge. Of two for one pair the later one counts.
func (t *pairTable) set(m Merge) {
	for i := t.hash(m.Left, m.Right); ; i = (i + 1) & (len(t.slots) - 1) {
		s := &t.slots[i]
		if s.left == None || s.left == m.Left && s.right == m.Right {
			*s = slot{left: m.Left, right: m.Right, joined: m.Joined, rank: m.Rank}
			return
		}
	}
}

// noRank is the rank of pairs that no merge joins.
const noRank int32 = 1<<31 - 1

// get returns what a pair becomes and its rank, or None and noRank.
func (t *pairTable) get(left, right int32) (joined, rank int32) {
	for i := t.hash(left, right); ; i = (i + 1) & (len(t.slots) - 1) {
		s := &t.slots[i]
		if s.left == left && s.right == right {
			return s.joined, s.rank
		}
		if s.left == None {
			return None, noRank
		}
	}
}

// symbols appends the ids that a word begins with.
func (m *Model) symbols(dst []int32, word []byte) []int32 {
	if m.settings.ByteLevel {
		for _, b := range word {
			if id := m.byteIDs[b]; id != None {
				dst = append(dst, id)
			} else {
				dst = m.unknown(dst)
			}
		}
		return dst
	}
	for len(word) > 0 {
		r, size := utf8.DecodeRune(word)
		if id, ok := m.runes[r]; ok {
			dst = append(dst, id)
		} else {
			dst = m.outside(dst, word[:size])
		}
		word = word[size:]
	}
	return dst
}

// outside appends the ids of a character that is no token.
func (m *Model) outside(dst []int32, char []byte) []int32 {
	for _, b := range char {
		if m.byteIDs[b] == None {
			return m.unknown(dst)
		}
	}
	for _, b := range char {
		dst = append(dst, m.byteIDs[b])
	}
	return dst
}

func (m *Model) unknown(dst []int32) []int32 {
	id := m.settings.Unknown
	if id == None || m.settings.FuseUnknown && len(dst) > 0 && dst[len(dst)-1] == id {
		return dst
	}
	return append(dst, id)
}
