package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/runtime/tokenizer/internal/bpe"
	"github.com/primus-fl/primus/runtime/tokenizer/internal/normalize"
	"github.com/primus-fl/primus/runtime/tokenizer/internal/split"
	"github.com/primus-fl/primus/runtime/tokenizer/internal/words"
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
	vocab     *vocabulary
	chain     chain
	byteLevel bool     // the pre-tokenizers turn text into bytes
	verbatim  []added  // added tokens
	tokens    [][]byte // texts of ids, as the model sees them
	template  bool     // the file says what is put around a prompt
	bos       int32    // -1 unless the file says which it is; so are the next two
	eos       int32
	pad       int32
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

// readNormalizer returns the normalizer that an object describes.
func readNormalizer(raw json.RawMessage) (normalize.Normalizer, error) {
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "Sequence":
		var s struct {
			Type        string            `json:"type"`
			Normalizers []json.RawMessage `json:"normalizers"`
		}
		if err := strict(raw, &s); err != nil {
			return nil, err
		}
		return readSequence(s.Normalizers)
	case "Prepend":
		var p struct {
			Type    string `json:"type"`
			Prepend string `json:"prepend"`
		}
		err := strict(raw, &p)
		return normalize.Prepend(p.Prepend), err
	case "Replace":
		what, with, err := readReplace(raw)
		return normalize.Replace(what, with), err
	case "Strip":
		var s struct {
			Type  string `json:"type"`
			Left  bool   `json:"strip_left"`
			Right bool   `json:"strip_right"`
		}
		err := strict(raw, &s)
		return normalize.Strip(s.Left, s.Right), err
	case "Lowercase":
		return normalize.Lower, nil
	case "StripAccents":
		return normalize.StripMarks, nil
	case "Precompiled":
		var p struct {
			Type string `json:"type"`
			Map  []byte `json:"precompiled_charsmap"`
		}
		if err := strict(raw, &p); err != nil {
			return nil, err
		}
		return normalize.Precompiled(p.Map)
	}
	if n, ok := normalize.Form(kind); ok {
		return n, nil
	}
	return nil, &UnsupportedError{What: fmt.Sprintf("type %q", kind), Supported: []string{
		"NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Strip", "Lowercase", "StripAccents", "Precompiled", "Sequence",
	}}
}

// readSequence returns the normalizer that applies others one after the other.
func readSequence(raws []json.RawMessage) (normalize.Normalizer, error) {
	var steps []normalize.Normalizer
	for i, raw := range raws {
		n, err := readNormalizer(raw)
		if err != nil {
			return nil, fmt.Errorf("normalizers[%d]: %w", i, err)
		}
		steps = append(steps, n)
	}
	return normalize.Sequence(steps), nil
}

// readReplace returns what a Replace replaces, and with what.
func readReplace(raw json.RawMessage) (what, with string, err error) {
	var r struct {
		Type    string `json:"type"`
		Pattern text   `json:"pattern"`
		Content string `json:"content"`
	}
	if err := strict(raw, &r); err != nil {
		return "", "", err
	}
	what, err = r.Pattern.literal()
	return what, r.Content, err
}

// readPreTokenizer adds the steps that an object describes.
func (b *builder) readPreTokenizer(raw json.RawMessage) error {
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	switch kind {
	case "Sequence":
		var s struct {
			Type          string            `json:"type"`
			PreTokenizers []json.RawMessage `json:"pretokenizers"`
		}
		if err := strict(raw, &s); err != nil {
			return err
		}
		for i, raw := range s.PreTokenizers {
			if err := b.readPreTokenizer(raw); err != nil {
				return fmt.Errorf("pretokenizers[%d]: %w", i, err)
			}
		}
		return nil
	case "ByteLevel":
		return b.readByteLevel(raw)
	case "Split":
		return b.readSplit(raw)
	case "Metaspace":
		return b.readMetaspace(raw)
	case "Digits":
		var d struct {
			Type string `json:"type"`
			Each bool   `json:"individual_digits"`
		}
		err := strict(raw, &d)
		return errors.Join(err, b.addStep(step{scan: split.Digits(d.Each)}))
	case "Punctuation":
		var p struct {
			Type     string   `json:"type"`
			Behavior behavior `json:"behavior"`
		}
		if err := strict(raw, &p); err != nil {
			return err
		}
		if p.Behavior != "" && p.Behavior != "Isolated" {
			return &UnsupportedError{What: fmt.Sprintf("Punctuation with behavior %q", p.Behavior), Supported: []string{"Isolated"}}
		}
		return b.addStep(step{scan: split.Punctuation()})
	}
	return &UnsupportedError{What: fmt.Sprintf("type %q", kind), Supported: []string{"ByteLevel", "Split", "Metaspace", "Digits", "Punctuation", "Sequence"}}
}

// addStep adds a step. Nothing may follow a ByteLevel, whose words are bytes and no text.
func (b *builder) addStep(s step) error {
	if b.byteLevel {
		return errors.New("a pre-tokenizer after ByteLevel is not supported: ByteLevel must be the last one")
	}
	b.steps = append(b.steps, s)
	return nil
}

func (b *builder) readByteLevel(raw json.RawMessage) error {
	l := struct {
		Type        string `json:"type"`
		PrefixSpace bool   `json:"add_prefix_space"`
		TrimOffsets bool   `json:"trim_offsets"`
		UseRegex    bool   `json:"use_regex"`
	}{UseRegex: true}
	if err := strict(raw, &l); err != nil {
		return err
	}
	var s step
	if l.PrefixSpace {
		s.rewrite = spaceFirst
	}
	if l.UseRegex {
		s.scan, _ = split.Find(split.GPT2)
	}
	err := b.addStep(s)
	b.byteLevel = true
	return err
}

func (b *builder) readSplit(raw json.RawMessage) error {
	var s struct {
		Type     string   `json:"type"`
		Pattern  text     `json:"pattern"`
		Behavior behavior `json:"behavior"`
		Invert   bool     `json:"invert"`
	}
	if err := strict(raw, &s); err != nil {
		return err
	}
	if s.Pattern.Regex == nil {
		what, err := s.Pattern.literal()
		if err != nil {
			return err
		}
		scan, ok := literal(what, s.Behavior)
		if !ok || s.Invert {
			return &UnsupportedError{
				What:      fmt.Sprintf("Split at a text with behavior %q and invert %t", s.Behavior, s.Invert),
				Supported: []string{"Isolated", "MergedWithPrevious", "MergedWithNext", "all without invert"},
			}
		}
		return b.addStep(step{scan: scan})
	}
	scan, ok := split.Find(*s.Pattern.Regex)
	if !ok {
		return &UnsupportedError{
			What:      fmt.Sprintf("the pattern %q", *s.Pattern.Regex),
			Supported: append([]string{"those of"}, split.Names()...),
		}
	}
	// The patterns match every character, so these two are the same.
	if s.Behavior == "Isolated" || s.Behavior == "Removed" && s.Invert {
		return b.addStep(step{scan: scan})
	}
	return &UnsupportedError{
		What:      fmt.Sprintf("Split by a pattern with behavior %q and invert %t", s.Behavior, s.Invert),
		Supported: []string{"Isolated", "Removed with invert"},
	}
}

func (b *builder) readMetaspace(raw json.RawMessage) error {
	m := struct {
		Type        string `json:"type"`
		Replacement string `json:"replacement"`
		StrRep      string `json:"str_rep"`
		PrefixSpace *bool  `json:"add_prefix_space"`
		Scheme      string `json:"prepend_scheme"`
		Split       *bool  `json:"split"`
	}{Replacement: "▁", Scheme: "always"}
	if err := strict(raw, &m); err != nil {
		return err
	}
	if m.PrefixSpace != nil && !*m.PrefixSpace {
		m.Scheme = "never"
	}
	if !slices.Contains([]string{"always", "first", "never"}, m.Scheme) {
		return fmt.Errorf("Metaspace has prepend_scheme %q: it is always, first or never", m.Scheme)
	}
	if m.Replacement == "" {
		return errors.New("the replacement of Metaspace is empty")
	}
	s := step{rewrite: metaspace(m.Replacement, m.Scheme)}
	if m.Split == nil || *m.Split {
		s.scan, _ = literal(m.Replacement, "MergedWithNext")
	}
	return b.addStep(s)
}

// addTokens enters the added tokens.
func (b *builder) addTokens(tokens []added) error {
	var raw, normal []added
	var rawTexts, normalTexts []string
	for _, a := range tokens {
		if a.Content == "" {
			continue
		}
		if err := b.vocab.add(a); err != nil {
			return err
		}
		if b.normalizer == nil || !a.normalized() {
			raw, rawTexts = append(raw, a), append(rawTexts, a.Content)
			continue
		}
		if text := string(b.normalizer(nil, []byte(a.Content))); text != "" {
			normal, normalTexts = append(normal, a), append(normalTexts, text)
		}
	}
	b.raw, b.normal = newMatcher(raw, rawTexts), newMatcher(normal, normalTexts)
	return nil
}

// readPostProcessor finds what is put before and after a prompt.
func (b *builder) readPostProcessor(raw json.RawMessage) error {
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	switch kind {
	case "ByteLevel": // says what the offsets of tokens are, which this package does not give
		return nil
	case "Sequence":
		var s struct {
			Type       string            `json:"type"`
			Processors []json.RawMessage `json:"processors"`
		}
		if err := strict(raw, &s); err != nil {
			return err
		}
		for i, raw := range s.Processors {
			if err := b.readPostProcessor(raw); err != nil {
				return fmt.Errorf("processors[%d]: %w", i, err)
			}
		}
		return nil
	case "TemplateProcessing":
		return b.readTemplate(raw)
	}
	return &UnsupportedError{What: fmt.Sprintf("type %q", kind), Supported: []string{"TemplateProcessing", "ByteLevel", "Sequence"}}
}

// readTemplate reads the template for one text.
func (b *builder) readTemplate(raw json.RawMessage) error {
	type part struct {
		ID string `json:"id"`
	}
	var t struct {
		Single []struct {
			SpecialToken *part `json:"SpecialToken"`
			Sequence     *part `json:"Sequence"`
		} `json:"single"`
		SpecialTokens map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	if len(b.prefix)+len(b.suffix) > 0 {
		return errors.New("it has more than one template")
	}
	b.template = true
	seen := false
	for _, p := range t.Single {
		switch {
		case p.Sequence != nil && !seen:
			seen = true
		case p.Sequence != nil:
			return errors.New("its template for one text has two of them")
		case p.SpecialToken == nil:
			return errors.New("its template has a part that is neither a SpecialToken nor a Sequence")
		default:
			token, ok := t.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return fmt.Errorf("its template has the token %q, which special_tokens lacks", p.SpecialToken.ID)
			}
			if i := slices.IndexFunc(token.IDs, func(id int32) bool { return b.vocab.token(id) == "" }); i >= 0 {
				return fmt.Errorf("its template has the id %d, which is no token", token.IDs[i])
			}
			if seen {
				b.suffix = append(b.suffix, token.IDs...)
			} else {
				b.prefix = append(b.prefix, token.IDs...)
			}
		}
	}
	if !seen {
		return errors.New("its template for one text does not have the text")
	}
	return nil
}

// readDecoder adds what an object describes to the chain.
func (b *builder) readDecoder(raw json.RawMessage) error {
	b.chain.between = ""
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	c := &b.chain
	switch kind {
	case "Sequence":
		var s struct {
			Type     string            `json:"type"`
			Decoders []json.RawMessage `json:"decoders"`
		}
		if err := strict(raw, &s); err != nil {
			return err
		}
		for i, raw := range s.Decoders {
			if err := b.readDecoder(raw); err != nil {
				return fmt.Errorf("decoders[%d]: %w", i, err)
			}
		}
	case "Fuse":
		c.fused = true
	case "ByteLevel":
		return c.each(byteLevelText)
	case "ByteFallback":
		return c.each(byteFallbackText)
	case "Replace":
		what, with, err := readReplace(raw)
		if err != nil {
			return err
		}
		if c.fused {
			c.finish = append(c.finish, func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(what), []byte(with)) })
			return nil
		}
		return c.each(func(token string) string { return strings.ReplaceAll(token, what, with) })
	case "Strip":
		var s struct {
			Type    string `json:"type"`
			Content string `json:"content"`
			Start   int    `json:"start"`
			Stop    int    `json:"stop"`
		}
		if err := strict(raw, &s); err != nil {
			return err
		}
		what := []byte(s.Content)
		start, stop := min(s.Start, maxVocab), min(s.Stop, maxVocab)
		if c.fused {
			c.finish = append(c.finish, func(text []byte) []byte { return stripText(text, what, start, stop) })
			return nil
		}
		return c.each(func(token string) string { return string(stripText([]byte(token), what, start, stop)) })
	case "Metaspace":
		m := struct {
			Type        string `json:"type"`
			Replacement string `json:"replacement"`
			StrRep      string `json:"str_rep"`
			PrefixSpace *bool  `json:"add_prefix_space"`
			Scheme      string `json:"prepend_scheme"`
			Split       *bool  `json:"split"`
		}{Replacement: "▁"}
		if err := strict(raw, &m); err != nil {
			return err
		}
		if m.Scheme != "never" {
			c.finish = append(c.finish, func(text []byte) []byte { return bytes.TrimPrefix(text, []byte(" ")) })
		}
		return c.each(func(token string) string { return strings.ReplaceAll(token, m.Replacement, " ") })
	default:
		return &UnsupportedError{What: fmt.Sprintf("type %q", kind), Supported: []string{"ByteLevel", "ByteFallback", "Replace", "Strip", "Fuse", "Metaspace", "Sequence"}}
	}
	return nil
}

// each adds a step for single tokens.
func (c *chain) each(change func(token string) string) error {
	if c.fused {
		return errors.New("a decoder of tokens after Fuse, which leaves none, is not supported")
	}
	c.tokens = append(c.tokens, change)
	return nil
}

// build completes the pipeline and the decoder.
func (b *builder) build() (*pipeline, *decoder) {
	// Sums of scores depend on where they begin, if only by rounding, so Unigram models see all text.
	_, isBPE := b.model.(*bpe.Model)
	if n := len(b.steps); isBPE && !b.byteLevel && (n == 0 || b.steps[n-1].scan == nil) {
		b.steps = append(b.steps, step{scan: words.NewCutter(b.tokens, '▁').Next})
	}
	b.init()
	verbatim := map[int32]bool{}
	for _, a := range b.verbatim {
		verbatim[a.ID] = true
	}
	return &b.pipeline, newDecoder(b.vocab, &b.chain, verbatim)
}
