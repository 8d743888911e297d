package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

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
		return errors.Join(err, b.addStep(step{scan: Digits(d.Each)}))
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
		return b.addStep(step{scan: Punctuation()})
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
		s.scan, _ = Find(GPT2)
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
	scan, ok := Find(*s.Pattern.Regex)
	if !ok {
		return &UnsupportedError{
			What:      fmt.Sprintf("the pattern %q", *s.Pattern.Regex),
			Supported: append([]string{"those of"}, Names()...),
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

// metaspaceFile is a pre-tokenizer or decoder of type Metaspace.
type metaspaceFile struct {
	Type        string `json:"type"`
	Replacement string `json:"replacement"`
	StrRep      string `json:"str_rep"`
	PrefixSpace *bool  `json:"add_prefix_space"`
	Scheme      string `json:"prepend_scheme"`
	Split       *bool  `json:"split"`
}

// parseMetaspace reads a Metaspace.
func parseMetaspace(raw json.RawMessage) (metaspaceFile, error) {
	m := metaspaceFile{Replacement: "▁", Scheme: "always"}
	if err := strict(raw, &m); err != nil {
		return m, err
	}
	if m.PrefixSpace != nil && !*m.PrefixSpace {
		m.Scheme = "never"
	}
	if !slices.Contains([]string{"always", "first", "never"}, m.Scheme) {
		return m, fmt.Errorf("the prepend_scheme of Metaspace is %q, want always, first or never", m.Scheme)
	}
	if m.Replacement == "" {
		return m, errors.New("the replacement of Metaspace is empty")
	}
	return m, nil
}

func (b *builder) readMetaspace(raw json.RawMessage) error {
	m, err := parseMetaspace(raw)
	if err != nil {
		return err
	}
	s := step{rewrite: metaspace(m.Replacement, m.Scheme)}
	if m.Split == nil || *m.Split {
		s.scan, _ = literal(m.Replacement, "MergedWithNext")
	}
	return b.addStep(s)
}
