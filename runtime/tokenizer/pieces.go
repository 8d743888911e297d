package tokenizer

import "fmt"

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
