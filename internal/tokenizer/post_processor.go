package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

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
