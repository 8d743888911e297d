package tokenizer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Types of pieces of SentencePiece.
const (
	pieceNormal      = 1
	pieceUnknown     = 2
	pieceControl     = 3
	pieceUserDefined = 4
	pieceUnused      = 5
	pieceByte        = 6
)

// Types of models of SentencePiece.
const (
	modelUnigram = 1
	modelBPE     = 2
)

// piece is a token of SentencePiece.
type piece struct {
	text  string
	score float32
	kind  uint64
}

// spModel is what this package uses of a model of SentencePiece (sentencepiece_model.proto).
type spModel struct {
	pieces        []piece
	kind          uint64
	suffixSpace   bool
	byteFallback  bool
	bos, eos, pad int32
	charsMap      []byte
	dummyPrefix   bool
	removeSpaces  bool
	escapeSpaces  bool
}

// fields calls f with each field of a message: bits for numbers, content for what has a length.
func fields(message []byte, f func(number protowire.Number, bits uint64, content []byte) error) error {
	for offset := 0; offset < len(message); {
		number, kind, n := protowire.ConsumeTag(message[offset:])
		if n < 0 {
			return fmt.Errorf("byte %d is not the beginning of a field: %w", offset, protowire.ParseError(n))
		}
		offset += n
		var bits uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			bits, n = protowire.ConsumeVarint(message[offset:])
		case protowire.Fixed32Type:
			var small uint32
			small, n = protowire.ConsumeFixed32(message[offset:])
			bits = uint64(small)
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(message[offset:])
		default:
			n = protowire.ConsumeFieldValue(number, kind, message[offset:])
		}
		if n < 0 {
			return fmt.Errorf("field %d at byte %d: %w", number, offset, protowire.ParseError(n))
		}
		offset += n
		if err := f(number, bits, content); err != nil {
			return err
		}
	}
	return nil
}

// readSentencePiece decodes a model.
func readSentencePiece(data []byte) (*spModel, error) {
	m := &spModel{kind: modelUnigram, bos: 1, eos: 2, pad: -1, dummyPrefix: true, removeSpaces: true, escapeSpaces: true}
	err := fields(data, func(number protowire.Number, _ uint64, content []byte) error {
		switch number {
		case 1:
			return m.addPiece(content)
		case 2:
			return fields(content, m.trainerField)
		case 3:
			return fields(content, m.normalizerField)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("it is no tokenizer.json, no file of tiktoken and no model of SentencePiece: %w", err)
	}
	if len(m.pieces) == 0 {
		return nil, errors.New("it is no tokenizer.json, no file of tiktoken, and as a model of SentencePiece it has no pieces")
	}
	return m, nil
}

func (m *spModel) addPiece(message []byte) error {
	p := piece{kind: pieceNormal}
	err := fields(message, func(number protowire.Number, bits uint64, content []byte) error {
		switch number {
		case 1:
			p.text = string(content)
		case 2:
			p.score = math.Float32frombits(uint32(bits))
		case 3:
			p.kind = bits
		}
		return nil
	})
	if err == nil && !utf8.ValidString(p.text) {
		err = fmt.Errorf("piece %d, %q, is not UTF-8", len(m.pieces), p.text)
	}
	m.pieces = append(m.pieces, p)
	return err
}

func (m *spModel) trainerField(number protowire.Number, bits uint64, _ []byte) error {
	switch number {
	case 3:
		m.kind = bits
	case 24:
		m.suffixSpace = bits != 0
	case 35:
		m.byteFallback = bits != 0
	case 41:
		m.bos = int32(bits)
	case 42:
		m.eos = int32(bits)
	case 43:
		m.pad = int32(bits)
	}
	return nil
}

func (m *spModel) normalizerField(number protowire.Number, bits uint64, content []byte) error {
	switch number {
	case 2:
		m.charsMap = content
	case 3:
		m.dummyPrefix = bits != 0
	case 4:
		m.removeSpaces = bits != 0
	case 5:
		m.escapeSpaces = bits != 0
	}
	return nil
}

// parseSentencePiece reads a tokenizer.model.
func parseSentencePiece(data []byte) (*builder, error) {
	m, err := readSentencePiece(data)
	if err != nil {
		return nil, err
	}
	if m.suffixSpace {
		return nil, &UnsupportedError{What: "treat_whitespace_as_suffix", Supported: []string{"spaces at the beginning of words"}}
	}
	b := &builder{}
	ids := make(map[string]int32, len(m.pieces))
	for i, p := range m.pieces {
		if _, ok := ids[p.text]; ok || p.text == "" {
			return nil, fmt.Errorf("piece %d is %q, which is empty or there before", i, p.text)
		}
		ids[p.text] = int32(i)
	}
	if b.vocab, err = newVocabulary(ids); err != nil {
		return nil, err
	}
	for _, s := range []struct{ from, to *int32 }{{&m.bos, &b.bos}, {&m.eos, &b.eos}, {&m.pad, &b.pad}} {
		if *s.to = *s.from; *s.from < 0 || int(*s.from) >= len(m.pieces) || m.pieces[*s.from].kind != pieceControl {
			*s.to = -1
		}
	}
	if b.bos >= 0 {
		b.prefix = []int32{b.bos}
	}
	if err := m.addSymbols(b); err != nil {
		return nil, err
	}
	keep := b.normal
	b.normalizer, err = sentencePieceNormalizer(SentencePieceSettings{
		CharsMap: m.charsMap, DummyPrefix: m.dummyPrefix, RemoveExtraSpaces: m.removeSpaces, EscapeSpaces: m.escapeSpaces,
		Keep: func(text []byte) int {
			_, n := keep.longest(text, 0)
			return n
		},
	})
	if err != nil {
		return nil, err
	}
	b.setDecoder(m)
	return b, m.setModel(b)
}

// addSymbols enters the pieces that are found in text as they are: control symbols, as libraries of
// Hugging Face do, and those that users defined.
func (m *spModel) addSymbols(b *builder) error {
	var normal []added
	var texts []string
	for i, p := range m.pieces {
		a := added{ID: int32(i), Content: p.text, Special: p.kind != pieceUserDefined}
		switch p.kind {
		case pieceControl, pieceUnknown:
			b.found = append(b.found, a)
			if err := b.vocab.add(a); err != nil {
				return err
			}
		case pieceUserDefined:
			normal, texts = append(normal, a), append(texts, p.text)
		}
	}
	b.normal = newMatcher(normal, texts)
	return nil
}

// setDecoder sets what turns pieces into text.
func (b *builder) setDecoder(m *spModel) {
	b.chain.tokens = []func(string) string{byteFallbackText}
	if m.escapeSpaces {
		b.chain.tokens = append(b.chain.tokens, func(token string) string { return strings.ReplaceAll(token, "▁", " ") })
	}
	switch {
	case m.removeSpaces:
		b.chain.finish = append(b.chain.finish, func(text []byte) []byte { return bytes.TrimLeft(text, " ") })
	case m.dummyPrefix:
		b.chain.finish = append(b.chain.finish, func(text []byte) []byte { return bytes.TrimPrefix(text, []byte(" ")) })
	}
}

// setModel sets the model of the builder.
func (m *spModel) setModel(b *builder) error {
	tokens := make([][]byte, len(m.pieces))
	unknown := int32(-1)
	for i, p := range m.pieces {
		switch p.kind {
		case pieceNormal, pieceUserDefined:
			tokens[i] = []byte(p.text)
		case pieceUnknown:
			unknown = int32(i)
		}
	}
	b.tokens = tokens
	byteIDs := b.byteIDs(m.byteFallback)
	switch m.kind {
	case modelBPE:
		if i := slices.IndexFunc(m.pieces, func(p piece) bool { return p.kind == pieceUnused }); i >= 0 {
			return &UnsupportedError{What: fmt.Sprintf("the unused piece %q of a BPE model", m.pieces[i].text), Supported: []string{"normal, control, user-defined and byte pieces"}}
		}
		b.model = New(Settings{
			Tokens: tokens, Merges: mergesOf(tokens, m.ranks()), ByteIDs: byteIDs, Unknown: unknown, FuseUnknown: true,
		})
	case modelUnigram:
		b.normal = nil // the scores of pieces that users defined let the model find them
		b.model = newUnigramModel(unigramSettings{Tokens: tokens, Scores: m.scores(), Unknown: unknown, ByteIDs: byteIDs, Single: true})
	default:
		return &UnsupportedError{What: fmt.Sprintf("the model type %d", m.kind), Supported: []string{"1 (unigram)", "2 (bpe)"}}
	}
	return nil
}

// ranks returns the order in which pieces are made: by descending score, equal scores alike.
func (m *spModel) ranks() []int32 {
	scores := make([]float32, len(m.pieces))
	for i, p := range m.pieces {
		scores[i] = p.score
	}
	slices.SortFunc(scores, func(a, b float32) int { return cmp.Compare(b, a) })
	scores = slices.Compact(scores)
	ranks := make([]int32, len(m.pieces))
	for i, p := range m.pieces {
		at, _ := slices.BinarySearchFunc(scores, p.score, func(a, b float32) int { return cmp.Compare(b, a) })
		ranks[i] = int32(at)
	}
	return ranks
}

// scores returns the scores of a unigram model. A piece that users defined is better than any way
// to write it with others.
func (m *spModel) scores() []float64 {
	best := float32(0x1p-126) // with which SentencePiece begins, so that scores below 0 count as 0
	for _, p := range m.pieces {
		if p.kind == pieceNormal {
			best = max(best, p.score)
		}
	}
	scores := make([]float64, len(m.pieces))
	for i, p := range m.pieces {
		scores[i] = float64(p.score)
		if p.kind == pieceUserDefined {
			scores[i] = float64(float32(len(p.text))*best) - 0.1
		}
	}
	return scores
}

// mergesOf returns every pair of tokens whose texts together are that of a token, with its rank.
func mergesOf(tokens [][]byte, ranks []int32) []Merge {
	ids := make(map[string]int32, len(tokens))
	for id, text := range tokens {
		if text != nil {
			ids[string(text)] = int32(id)
		}
	}
	var merges []Merge
	for joined, text := range tokens {
		for i := 1; i < len(text); i++ {
			left, ok := ids[string(text[:i])]
			if !ok {
				continue
			}
			if right, ok := ids[string(text[i:])]; ok {
				merges = append(merges, Merge{Left: left, Right: right, Joined: int32(joined), Rank: ranks[joined]})
			}
		}
	}
	return merges
}
