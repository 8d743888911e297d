package tokenizer

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// unknownPenalty is how much less than the least score a character without a token counts.
const unknownPenalty = 10

// unigramSettings describe a Model.
type unigramSettings struct {
	// Tokens are the texts of the ids, in UTF-8; an id that text never becomes has nil.
	Tokens [][]byte

	// Scores are the logarithms of the probabilities of the tokens.
	Scores []float64

	// Unknown is the id of characters without a token, or -1 to leave them out. Adjacent ones become
	// one id.
	Unknown int32

	// ByteIDs are the ids of bytes, which stand for characters without a token if all bytes have
	// one; -1 stands for none.
	ByteIDs [256]int32

	// Single says that sums are kept in 32 bits, as SentencePiece does; a sum is compared before it is
	// rounded.
	Single bool
}

// unigramModel encodes words.
type unigramModel struct {
	settings unigramSettings
	trie     trie
	unknown  float64 // the score of a character without a token
	bytes    bool
	scratch  sync.Pool // of *[]step
}

// unigramStep is the best way to write the text up to a place: its sum, and its last token.
type unigramStep struct {
	sum   float64
	begin int32 // -1 if no way is known
	id    int32
}

// newUnigramModel returns the model for the settings.
func newUnigramModel(s unigramSettings) *unigramModel {
	m := &unigramModel{settings: s, bytes: true, trie: newTrie(s.Tokens)}
	least := math.Inf(1)
	for _, score := range s.Scores {
		least = min(least, score)
	}
	m.unknown = m.round(least - unknownPenalty)
	for _, id := range s.ByteIDs {
		m.bytes = m.bytes && id >= 0
	}
	m.scratch.New = func() any { return new([]unigramStep) }
	return m
}

func (m *unigramModel) round(x float64) float64 {
	if m.settings.Single {
		return float64(float32(x))
	}
	return x
}

// Encode appends the ids of a word to dst.
func (m *unigramModel) Encode(dst []int32, word []byte) []int32 {
	scratch := m.scratch.Get().(*[]unigramStep)
	defer m.scratch.Put(scratch)
	best := (*scratch)[:0]
	for range len(word) + 1 {
		best = append(best, unigramStep{begin: -1})
	}
	*scratch = best
	reach := func(begin, end int, score float64, id int32) {
		sum := score + best[begin].sum
		if to := &best[end]; to.begin < 0 || sum > to.sum {
			*to = unigramStep{sum: m.round(sum), begin: int32(begin), id: id}
		}
	}
	for begin := 0; begin < len(word); {
		_, size := utf8.DecodeRune(word[begin:])
		single := false
		node := int32(0)
		for end := begin; end < len(word); {
			if node = m.trie.child(node, word[end]); node < 0 {
				break
			}
			end++
			if id := m.trie.tokens[node]; id >= 0 {
				reach(begin, end, m.settings.Scores[id], id)
				single = single || end == begin+size
			}
		}
		if !single {
			reach(begin, begin+size, m.unknown, m.settings.Unknown)
		}
		begin += size
	}
	from := len(dst)
	for end := len(word); end > 0; end = int(best[end].begin) {
		dst = m.appendBackwards(dst, from, best[end], word[best[end].begin:end])
	}
	slices.Reverse(dst[from:])
	return dst
}

// appendBackwards appends the ids of a step, the last one first.
func (m *unigramModel) appendBackwards(dst []int32, from int, s unigramStep, text []byte) []int32 {
	switch {
	case s.id != m.settings.Unknown:
		return append(dst, s.id)
	case m.bytes:
		for _, b := range slices.Backward(text) {
			dst = append(dst, m.settings.ByteIDs[b])
		}
		return dst
	case s.id < 0 || len(dst) > from && dst[len(dst)-1] == s.id:
		return dst
	default:
		return append(dst, s.id)
	}
}
