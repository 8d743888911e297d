package tokenizer

import (
	"fmt"
)

// SentencePiece is what a model of SentencePiece says, for those who write it in another form.
type SentencePiece struct {
	Pieces            []Piece // by id
	BPE               bool    // in contrast to unigram
	Normalizes        bool    // text is changed by a map of characters
	DummyPrefix       bool    // a text begins with a space
	RemoveExtraSpaces bool
}

// Piece is a token of SentencePiece. Of BPE, the adjacent tokens are joined first whose sum has the
// highest score.
type Piece struct {
	Text  string
	Score float32
	Type  int32 // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
}

// ReadSentencePiece reads the content of a tokenizer.model.
func ReadSentencePiece(data []byte) (*SentencePiece, error) {
	m, err := readSentencePiece(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	s := &SentencePiece{BPE: m.kind == modelBPE, Normalizes: len(m.charsMap) > 0, DummyPrefix: m.dummyPrefix, RemoveExtraSpaces: m.removeSpaces}
	for _, p := range m.pieces {
		s.Pieces = append(s.Pieces, Piece{p.text, p.score, int32(p.kind)})
	}
	return s, nil
}

// Tiktoken is what a file of tiktoken says, for those who write it in another form: tokens as GPT-2
// writes them, with a character for each byte.
type Tiktoken struct {
	Tokens  []string    // by id, "" for an id that is none; those of special tokens come after them
	Merges  [][2]string // pairs of tokens that become one, those that are joined first before others
	Pattern string      // splits a text into words
}

// ReadTiktoken reads the content of a file of tiktoken.
func ReadTiktoken(data []byte) (*Tiktoken, error) {
	tokens, e, err := readEncoding(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t := &Tiktoken{Tokens: make([]string, len(tokens)), Pattern: e.pattern}
	ranks := make([]int32, len(tokens))
	for rank, token := range tokens {
		t.Tokens[rank], ranks[rank] = Encode(token), int32(rank)
	}
	for _, m := range mergesOf(tokens, ranks) {
		t.Merges = append(t.Merges, [2]string{t.Tokens[m.Left], t.Tokens[m.Right]})
	}
	return t, nil
}
