package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// pair is a merge of a file: "a b" or ["a", "b"].
type pair [2]string

// UnmarshalJSON reads both forms.
func (p *pair) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		var both []string
		if err := json.Unmarshal(data, &both); err != nil {
			return err
		}
		if len(both) != 2 {
			return fmt.Errorf("the merge %s has %d tokens: it takes 2", data, len(both))
		}
		*p = pair(both)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	left, right, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(right, " ") {
		return fmt.Errorf("the merge %q is not two tokens with a space between them", text)
	}
	*p = pair{left, right}
	return nil
}

// readModel reads the model of a tokenizer.json.
func (b *builder) readModel(raw json.RawMessage) error {
	if isNull(raw) {
		return errors.New("there is none")
	}
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	switch kind {
	case "BPE":
		return b.readBPE(raw)
	case "Unigram":
		return b.readUnigram(raw)
	}
	return &UnsupportedError{What: fmt.Sprintf("type %q", kind), Supported: []string{"BPE", "Unigram"}}
}

// bpeFile is a model of type BPE.
type bpeFile struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	UnkToken     *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnk      bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []pair           `json:"merges"`
}

func (b *builder) readBPE(raw json.RawMessage) error {
	var f bpeFile
	if err := strict(raw, &f); err != nil {
		return err
	}
	switch {
	case f.Dropout != nil && *f.Dropout != 0:
		return &UnsupportedError{What: fmt.Sprintf("dropout %v", *f.Dropout), Supported: []string{"no dropout"}}
	case f.Prefix != nil && *f.Prefix != "":
		return &UnsupportedError{What: fmt.Sprintf("continuing_subword_prefix %q", *f.Prefix), Supported: []string{"none"}}
	case f.Suffix != nil && *f.Suffix != "":
		return &UnsupportedError{What: fmt.Sprintf("end_of_word_suffix %q", *f.Suffix), Supported: []string{"none"}}
	}
	var err error
	if b.vocab, err = newVocabulary(f.Vocab); err != nil {
		return err
	}
	settings := Settings{ByteLevel: b.byteLevel, Unknown: None, FuseUnknown: f.FuseUnk, WholeWords: f.IgnoreMerges}
	if f.UnkToken != nil {
		if settings.Unknown = b.vocab.lookup(*f.UnkToken); settings.Unknown < 0 {
			return fmt.Errorf("unk_token %q is not in the vocabulary", *f.UnkToken)
		}
	}
	if settings.Merges, err = b.merges(f.Merges); err != nil {
		return err
	}
	settings.Tokens = b.modelTexts()
	settings.ByteIDs = b.byteIDs(f.ByteFallback)
	b.tokens, b.model = settings.Tokens, New(settings)
	return nil
}

// merges looks up the tokens of merges; the rank of a merge is its place.
func (b *builder) merges(pairs []pair) ([]Merge, error) {
	merges := make([]Merge, len(pairs))
	for i, p := range pairs {
		m := Merge{Left: b.vocab.lookup(p[0]), Right: b.vocab.lookup(p[1]), Joined: b.vocab.lookup(p[0] + p[1]), Rank: int32(i)}
		if m.Left < 0 || m.Right < 0 || m.Joined < 0 {
			return nil, fmt.Errorf("merges[%d] joins %q and %q: these and %q must be in the vocabulary", i, p[0], p[1], p[0]+p[1])
		}
		merges[i] = m
	}
	return merges, nil
}

// modelTexts returns the texts that the tokens stand for within words.
func (b *builder) modelTexts() [][]byte {
	texts := make([][]byte, len(b.vocab.texts))
	for id, token := range b.vocab.texts {
		switch {
		case token == "":
		case b.byteLevel:
			texts[id], _ = Decode(token)
		default:
			texts[id] = []byte(token)
		}
	}
	return texts
}

// byteIDs returns the ids of bytes: the symbols of a byte-level model, or with fallback the tokens
// such as <0x0A>.
func (b *builder) byteIDs(fallback bool) (ids [256]int32) {
	for i := range ids {
		switch {
		case b.byteLevel:
			ids[i] = b.vocab.lookup(Encode([]byte{byte(i)}))
		case fallback:
			ids[i] = b.vocab.lookup(fmt.Sprintf("<0x%02X>", i))
		default:
			ids[i] = None
		}
	}
	return ids
}

// scored is a token of a Unigram model: [text, score].
type scored struct {
	text  string
	score float64
}

// UnmarshalJSON reads the two elements.
func (s *scored) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("%s has %d elements: a token of the vocabulary is its text and its score", data, len(parts))
	}
	return errors.Join(json.Unmarshal(parts[0], &s.text), json.Unmarshal(parts[1], &s.score))
}

func (b *builder) readUnigram(raw json.RawMessage) error {
	var f struct {
		Type         string   `json:"type"`
		UnkID        *int32   `json:"unk_id"`
		Vocab        []scored `json:"vocab"`
		ByteFallback bool     `json:"byte_fallback"`
	}
	if err := strict(raw, &f); err != nil {
		return err
	}
	if b.byteLevel {
		return errors.New("a Unigram model after the pre-tokenizer ByteLevel is not supported: its tokens are characters")
	}
	ids := make(map[string]int32, len(f.Vocab))
	settings := unigramSettings{Unknown: -1}
	for i, token := range f.Vocab {
		if _, ok := ids[token.text]; ok {
			return fmt.Errorf("vocab[%d]: the token %q is there before", i, token.text)
		}
		ids[token.text] = int32(i)
		settings.Tokens = append(settings.Tokens, []byte(token.text))
		settings.Scores = append(settings.Scores, token.score)
	}
	if f.UnkID != nil {
		if settings.Unknown = *f.UnkID; *f.UnkID < 0 || int(*f.UnkID) >= len(f.Vocab) {
			return fmt.Errorf("unk_id is %d: the vocabulary has ids from 0 to %d", *f.UnkID, len(f.Vocab)-1)
		}
	}
	var err error
	if b.vocab, err = newVocabulary(ids); err != nil {
		return err
	}
	settings.ByteIDs = b.byteIDs(f.ByteFallback)
	b.tokens, b.model = settings.Tokens, newUnigramModel(settings)
	return nil
}
