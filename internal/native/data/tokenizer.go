package data

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// TokenizerType is the kind of a tokenizer, with Megatron's names.
type TokenizerType string

// The kinds of tokenizers. That of a file is found by its content.
const (
	ByteLevel     TokenizerType = "ByteLevel"
	HuggingFace   TokenizerType = "HuggingFaceTokenizer"
	SentencePiece TokenizerType = "SentencePieceTokenizer"
	Llama2        TokenizerType = "Llama2Tokenizer"
	Tik           TokenizerType = "TikTokenizer"
)

// Values returns the kinds of tokenizers.
func (TokenizerType) Values() []string {
	return []string{string(ByteLevel), string(HuggingFace), string(SentencePiece), string(Llama2), string(Tik)}
}

// TokenizerConfig are the parameters that name a tokenizer.
type TokenizerConfig struct {
	TokenizerType  TokenizerType `param:"tokenizer_type"`  // "" means that of tokenizer_model, or ByteLevel without
	TokenizerModel string        `param:"tokenizer_model"` // a file or a folder; "" for ByteLevel
}

// Load reads the tokenizer.
func (c TokenizerConfig) Load() (tokenizer.Tokenizer, error) {
	if c.TokenizerType != "" && !slices.Contains(c.TokenizerType.Values(), string(c.TokenizerType)) {
		return nil, fmt.Errorf("tokenizer_type: given %q, want %s", c.TokenizerType, strings.Join(c.TokenizerType.Values(), ", "))
	}
	if c.TokenizerModel == "" {
		if c.TokenizerType == "" || c.TokenizerType == ByteLevel {
			return tokenizer.Byte{}, nil
		}
		return nil, fmt.Errorf("tokenizer_model: not given, and tokenizer_type is %s: want a tokenizer's file or a folder that has it", c.TokenizerType)
	}
	if c.TokenizerType == ByteLevel {
		return nil, fmt.Errorf("tokenizer_model: given %s, and tokenizer_type is %s, which has no file: leave one of them out", c.TokenizerModel, c.TokenizerType)
	}
	t, err := tokenizer.Load(c.TokenizerModel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("tokenizer_model: %w: want a tokenizer.json, a tokenizer.model, a tiktoken file or a folder that has one; nothing is downloaded", err)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer_model: %w", err)
	}
	return t, nil
}
