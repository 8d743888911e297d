package tokenizer

import "errors"

// parseSentencePiece reads a tokenizer.model.
func parseSentencePiece([]byte) (*builder, error) {
	return nil, errors.New("SentencePiece is not supported in this version")
}
