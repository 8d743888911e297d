package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// jsonFile is a tokenizer.json. Its truncation and padding are left out: how long a text may be is
// the matter of those who encode it.
type jsonFile struct {
	AddedTokens   []added         `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

// UnsupportedError reports a part of a tokenizer that is not supported.
type UnsupportedError struct {
	What      string   // the part, as in type "WordPiece"
	Supported []string // what is supported in its place
}

// Error names the part and what is supported.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported; supported: %s", e.What, strings.Join(e.Supported, ", "))
}

// builder gathers what the parts of a file say.
type builder struct {
	pipeline
	vocab      *vocabulary
	chain      chain
	byteLevel  bool     // the pre-tokenizers turn text into bytes
	verbatim   []added  // tokens whose text decoders do not change
	found      []added  // added tokens that are found in the text itself
	configured []string // tokens that tokenizer_config.json adds
	tokens     [][]byte // texts of ids, as the model sees them
	template   bool     // the file says what is put around a prompt
	bos        int32    // -1 unless the file says which it is; so are the next two
	eos        int32
	pad        int32
}

// parseJSON reads a tokenizer.json.
func parseJSON(data []byte) (*builder, error) {
	var file jsonFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, jsonError(data, err)
	}
	b := &builder{verbatim: file.AddedTokens, chain: chain{between: " "}, bos: -1, eos: -1, pad: -1}
	parts := []struct {
		name string
		data json.RawMessage
		read func(json.RawMessage) error
	}{
		{"normalizer", file.Normalizer, func(raw json.RawMessage) (err error) { b.normalizer, err = readNormalizer(raw); return err }},
		{"pre_tokenizer", file.PreTokenizer, b.readPreTokenizer},
		{"model", file.Model, b.readModel},
		{"added_tokens", json.RawMessage("[]"), func(json.RawMessage) error { return b.addTokens(file.AddedTokens) }},
		{"post_processor", file.PostProcessor, b.readPostProcessor},
		{"decoder", file.Decoder, b.readDecoder},
	}
	for _, part := range parts {
		if isNull(part.data) && part.name != "model" {
			continue
		}
		if err := part.read(part.data); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return b, nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// jsonError adds the place to a syntax error.
func jsonError(data []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("line %d (byte %d): %w", line, syntax.Offset, err)
	}
	return err
}

// strict reads an object whose keys are all known, so that none is passed over in silence.
func strict(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// typeOf returns the type that an object says it has.
func typeOf(raw json.RawMessage) (string, error) {
	var t struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return "", err
	}
	if t.Type == nil {
		return "", errors.New("it has no type")
	}
	return *t.Type, nil
}

// text is a pattern of a file: a text or an expression.
type text struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// literal returns the text of a pattern that is none of the expressions.
func (t text) literal() (string, error) {
	switch {
	case t.String != nil && *t.String != "":
		return *t.String, nil
	case t.Regex != nil:
		return "", &UnsupportedError{What: fmt.Sprintf("the pattern %q", *t.Regex), Supported: []string{"texts (String)"}}
	}
	return "", errors.New("its pattern is empty")
}

// addTokens enters the added tokens.
func (b *builder) addTokens(tokens []added) error {
	var normal []added
	var texts []string
	for _, a := range tokens {
		if a.Content == "" {
			continue
		}
		if err := b.vocab.add(a); err != nil {
			return err
		}
		if b.normalizer == nil || !a.normalized() {
			b.found = append(b.found, a)
			continue
		}
		if text := string(b.normalizer(nil, []byte(a.Content))); text != "" {
			normal, texts = append(normal, a), append(texts, text)
		}
	}
	b.normal = newMatcher(normal, texts)
	return nil
}

// build completes the pipeline and the decoder.
func (b *builder) build() (*pipeline, *decoder) {
	// Sums of scores depend on where they begin, if only by rounding, so Unigram models see all text.
	_, isBPE := b.model.(*Model)
	if n := len(b.steps); isBPE && !b.byteLevel && (n == 0 || b.steps[n-1].scan == nil) {
		b.steps = append(b.steps, step{scan: NewCutter(b.tokens, '▁').Next})
	}
	texts := make([]string, len(b.found))
	for i, a := range b.found {
		texts[i] = a.Content
	}
	b.raw = newMatcher(b.found, texts)
	if b.normalizer != nil {
		b.prepended = bytes.TrimSuffix(b.normalizer(nil, []byte("x")), []byte("x"))
	}
	b.init()
	verbatim := map[int32]bool{}
	for _, a := range b.verbatim {
		verbatim[a.ID] = true
	}
	return &b.pipeline, newDecoder(b.vocab, &b.chain, verbatim)
}
